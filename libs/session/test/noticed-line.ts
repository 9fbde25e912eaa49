/**
 * For tests without liveness: a host that has gone in any way is known to be gone immediately.
 */
import type { HostChannel } from '@coxswain/ports';
import type { HostBeat, HostLiveness } from '@coxswain/protocol';

/** A host channel that reports silence. */
export function noticed(line: HostChannel): HostChannel {
  let newest: HostBeat | null = null;
  return {
    ...line,
    heartbeat(beat) {
      newest = beat;
      line.heartbeat(beat);
    },
    close() {
      if (newest) line.heartbeat({ ...newest, state: 'left', no: newest.no + 1 });
      newest = null;
      line.close();
    },
  };
}

/** Rare heartbeats, so that a month of virtual time costs little. */
export const PLACID: HostLiveness = { beatMs: 3_600_000, ttlMs: 4 * 3_600_000, leaseMs: 3 * 3_600_000 };
