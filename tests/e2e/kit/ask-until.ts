/** Waiting for what will be so, asked again and again: for programs as well as for tests. */
import { setTimeout as sleep } from 'node:timers/promises';

/** Each question may read whole journals: the pause grows with the time that was waited, so that long waits ask rarely. */
const PAUSE_SHARE = 0.2;
const SHORTEST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 200;

/**
 * Asks until the answer is neither undefined nor null nor false.
 * @param what what is waited for, in words, for the failure.
 * @throws Error after so many milliseconds without an answer.
 */
export async function askUntil<T>(
  what: string,
  ask: () => T | Promise<T>,
  patienceMs: number,
): Promise<NonNullable<Exclude<T, false>>> {
  const startedAt = Date.now();
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== null && answer !== false) return answer as NonNullable<Exclude<T, false>>;
    const waitedMs = Date.now() - startedAt;
    if (waitedMs > patienceMs) throw new Error(`waited ${patienceMs} ms in vain for ${what}`);
    await sleep(Math.min(Math.max(waitedMs * PAUSE_SHARE, SHORTEST_PAUSE_MS), LONGEST_PAUSE_MS));
  }
}
