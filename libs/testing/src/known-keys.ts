/** Checks keys of objects. Many tests are JavaScript, where a misspelt key would have no effect without an error. */
import { nearestWord, pathText, toWire } from '@coxswain/protocol';
import { SceneError } from './testing-errors.ts';

/**
 * Checks that an object of a test has known keys only.
 * @param where the receiver of the object, for the start of the message: `approve({ … })`.
 * @throws SceneError naming the unknown key, the most similar known key, and all known keys.
 */
export function checkKeys(where: string, given: unknown, known: readonly string[]): void {
  const has = `it has: ${known.join(', ')}`;
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw new SceneError(`${where} takes an object, { … }; ${has}`);
  const unknown = Object.keys(given).find((key) => !known.includes(key));
  if (unknown !== undefined) throw new SceneError(`${where} has no "${unknown}"${meantBy(unknown, known)} ${has}`);
}

/**
 * Converts an object of a test to wire form.
 * @param where the receiver of the object, for the start of the message.
 * @throws SceneError naming an unknown key at any depth, or another problem.
 */
export function inWireForm(where: string, schema: Parameters<typeof toWire>[0], given: unknown): unknown {
  const form = toWire(schema, given as never);
  if (form.ok) return form.value;
  throw new SceneError(`${where}: ${pathText(form.path)} ${form.words}`);
}

/** `; did you mean "tool"?` if a known word is similar; otherwise the end of the sentence. */
export function meantBy(word: string, words: readonly string[]): string {
  const meant = nearestWord(word, words);
  return meant === null ? '.' : `; did you mean "${meant}"?`;
}
