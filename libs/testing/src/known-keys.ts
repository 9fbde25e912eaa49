/** Keys that the kit knows: many tests are JavaScript, where a misspelt key would have no effect and say nothing. */
import { nearestWord, pathText, toWire } from '@coxswain/protocol';
import { SceneError } from './testing-errors.ts';

/**
 * Holds that an object of a test has only keys that are known.
 * @param where what takes the object, as the message begins: `approve({ … })`.
 * @throws SceneError naming the unknown key, the key that may have been meant, and all that there are.
 */
export function checkKeys(where: string, given: unknown, known: readonly string[]): void {
  const has = `it has: ${known.join(', ')}`;
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw new SceneError(`${where} takes an object, { … }; ${has}`);
  const unknown = Object.keys(given).find((key) => !known.includes(key));
  if (unknown !== undefined) throw new SceneError(`${where} has no "${unknown}"${meantBy(unknown, known)} ${has}`);
}

/**
 * What a test has written, in the form of the wire.
 * @param where what takes the object, as the message begins.
 * @throws SceneError naming a key that is unknown, at any depth.
 */
export function inWireForm(where: string, schema: Parameters<typeof toWire>[0], given: unknown): unknown {
  const form = toWire(schema, given as never);
  if (form.ok) return form.value;
  throw new SceneError(`${where}: ${pathText(form.path)} ${form.words}`);
}

/** `; did you mean "tool"?` where a word is near to one of these; else the end of the sentence. */
export function meantBy(word: string, words: readonly string[]): string {
  const meant = nearestWord(word, words);
  return meant === null ? '.' : `; did you mean "${meant}"?`;
}
