/** How long something took, as outcomes say it. */
import type { Clock } from '@coxswain/ports';

/** Milliseconds since `startedMs` of the monotonic clock, to the microsecond, and never less than none. */
export function elapsedMs(clock: Pick<Clock, 'monotonicMs'>, startedMs: number): number {
  return Math.max(0, Math.round((clock.monotonicMs() - startedMs) * 1_000) / 1_000);
}
