/** Passivation: when an idle session leaves the memory of its host. */
import type { Clock } from '@coxswain/ports';
import type { SessionRunner } from '../runner/session-runner.ts';
import type { HostOptions } from './host-interface.ts';
import type { HostState } from './host-state.ts';
import { forEachConcurrent } from './load-limit.ts';

const PASSIVATE_AFTER_MS = 30_000;
const LOOK_EVERY_MS = 5_000;

/**
 * Passivates sessions that have been idle for longer than `passivateAfterMs`, 30 s by default, and frees memory of the other
 * idle ones. Looks at all sessions every `sweepEveryMs`, 5 s by default. `SessionRunner.idleMs` decides whether a session is
 * idle. Runs until the host ends. Contract: does not reject.
 */
export async function passivateIdle(
  runners: ReadonlyMap<string, SessionRunner>,
  clock: Clock,
  state: HostState,
  { passivateAfterMs = PASSIVATE_AFTER_MS, sweepEveryMs = LOOK_EVERY_MS }: HostOptions,
): Promise<void> {
  while (!state.ended.aborted) {
    await clock.sleep(sweepEveryMs, state.ended);
    // Each is checked at its own time: it may have got work while others were passivated.
    await forEachConcurrent([...runners.values()], async (runner) => {
      if (state.isLeaving) return;
      if (runner.idleMs() > passivateAfterMs) await runner.passivate();
      else runner.releaseMemory();
    });
  }
}
