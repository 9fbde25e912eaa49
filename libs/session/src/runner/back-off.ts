/** The back-off of all retries of a session and its host: each delay is twice the one before, up to a bound. */

/** The first delay between attempts and the longest, in milliseconds. */
export interface BackOff {
  readonly firstMs: number;
  readonly maxMs: number;
}

/** The delay after so many failed attempts, in milliseconds. @param failures is at least 1. */
export function delayAfter(failures: number, { firstMs, maxMs }: BackOff): number {
  return Math.min(firstMs * 2 ** (failures - 1), maxMs);
}
