/** Waiting for what will be so, asked again and again: for programs as well as for tests. */
import { setTimeout as sleep } from 'node:timers/promises';

const ASKED_EVERY_MS = 20;

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
  const giveUpAt = Date.now() + patienceMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== null && answer !== false) return answer as NonNullable<Exclude<T, false>>;
    if (Date.now() > giveUpAt) throw new Error(`waited ${patienceMs} ms in vain for ${what}`);
    await sleep(ASKED_EVERY_MS);
  }
}
