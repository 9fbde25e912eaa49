/**
 * Messages between hosts on the bus.
 */
import * as z from 'zod';
import { ID_PATTERN, SessionId, TenantId } from './ids.ts';

/**
 * The times by which hosts detect dead and isolated hosts, in milliseconds. All hosts of a bus have the same values.
 */
export interface HostLiveness {
  /** Interval of a host's heartbeats. */
  readonly beatMs: number;
  /** Silence after which other hosts declare a host dead. */
  readonly ttlMs: number;
  /**
   * Time for which a host may work after it sent a heartbeat that came back to it from the bus. Shorter than `ttlMs`:
   * an isolated host stops before another host claims its sessions.
   */
  readonly leaseMs: number;
}

/** The times of every host outside tests. */
export const HOST_LIVENESS: HostLiveness = { beatMs: 300, ttlMs: 2_000, leaseMs: 1_500 };

const host = z.string().regex(ID_PATTERN);

/**
 * The heartbeat of a host. `serving`: it accepts partitions. `leaving`: it accepts none and ends its work. `left`: it
 * has no work; another host sends this state in the name of a host to declare it dead.
 */
export const HostBeat = z.strictObject({
  v: z.literal(1),
  host,
  state: z.enum(['serving', 'leaving', 'left']),
  /** Number of the heartbeat, from 1. 0: another host has sent it. */
  no: z.number().int().nonnegative(),
});
export type HostBeat = z.infer<typeof HostBeat>;

/**
 * Notification to the owner of a session: a command is at the position `seq` of its inbox. `seq` 0 announces no command
 * and asks whether the host still has the session. In both cases a host without the session sends {@link HostRelease}.
 */
export const HostRing = z.strictObject({
  v: z.literal(1),
  tenant: TenantId,
  session_id: SessionId,
  seq: z.number().int().nonnegative(),
});
export type HostRing = z.infer<typeof HostRing>;

/** Notification to all hosts that the sending host has left a session, or does not have it. */
export const HostRelease = HostRing.omit({ seq: true });
export type HostRelease = z.infer<typeof HostRelease>;

/** The note of a session with unfinished work. `host`: its owner; null if it waits for its next one. */
export const ActiveNote = z.strictObject({ v: z.literal(1), host: host.nullable() });
export type ActiveNote = z.infer<typeof ActiveNote>;

/** Answer of the retention job: the longest time until it purges a session that is deleted now, milliseconds. */
export const RetentionAnswer = z.strictObject({
  v: z.literal(1),
  /** Records, timers and snapshots. */
  records_ms: z.number().positive(),
  /** Large fields and files that no other session refers to. */
  files_ms: z.number().positive(),
});
export type RetentionAnswer = z.infer<typeof RetentionAnswer>;
