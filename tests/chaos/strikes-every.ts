/** Plans that strike again and again. */
import type { PlannedFault } from './nemesis.ts';

/** When the strikes of a plan come, milliseconds. */
export interface StrikeTimes {
  readonly everyMs: number;
  /** From the beginning of the load; default `everyMs`. A run too short for that is struck in its middle first. */
  readonly firstMs?: number;
  /** At least so long before the end nothing more is struck; default `everyMs`. */
  readonly quietMs?: number;
}

/** A plan of at least one strike, as many as a run of so many minutes has time for. */
export function strikesEvery(
  { everyMs, firstMs = everyMs, quietMs = everyMs }: StrikeTimes,
  minutes: number,
  strike: (i: number) => Omit<PlannedFault, 'atMs'>,
): PlannedFault[] {
  const wholeMs = minutes * 60_000;
  return Array.from({ length: Math.max(1, Math.floor((wholeMs - quietMs) / everyMs)) }, (_, i) => ({
    atMs: Math.min(firstMs, wholeMs / 2) + i * everyMs,
    ...strike(i),
  }));
}
