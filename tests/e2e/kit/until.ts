/** Waiting for what will be so: asked again and again, with a bound that only a real fault reaches. */
import { setTimeout as sleep } from 'node:timers/promises';
import { PATIENCE_MS } from './patience.ts';

const ASKED_EVERY_MS = 20;

/**
 * Asks until the answer is neither undefined nor null nor false.
 * @param what what is waited for, in words, for the failure.
 */
export async function until<T>(
  what: string,
  ask: () => T | Promise<T>,
  patienceMs = PATIENCE_MS,
): Promise<NonNullable<Exclude<T, false>>> {
  const giveUpAt = Date.now() + patienceMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== null && answer !== false) return answer as NonNullable<Exclude<T, false>>;
    if (Date.now() > giveUpAt) throw new Error(`waited ${patienceMs} ms in vain for ${what}`);
    await sleep(ASKED_EVERY_MS);
  }
}
