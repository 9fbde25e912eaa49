/** Waiting for what will be so: asked again and again, with a bound that only a real fault reaches. */
import { askUntil } from './ask-until.ts';
import { PATIENCE_MS } from './patience.ts';

/**
 * Asks until the answer is neither undefined nor null nor false.
 * @param what what is waited for, in words, for the failure.
 */
export function until<T>(
  what: string,
  ask: () => T | Promise<T>,
  patienceMs = PATIENCE_MS,
): Promise<NonNullable<Exclude<T, false>>> {
  return askUntil(what, ask, patienceMs);
}
