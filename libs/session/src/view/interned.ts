/** One copy of what many sessions of a host hold alike: each read its own from its journal. */
import { isDeepStrictEqual } from 'node:util';

/** Of so many different ones a copy is kept; of the others each session has its own. */
const KEPT_MAX = 256;

/** See the top of the file. What it gives out is nobody's to change. */
export class Interned<T extends object> {
  readonly #kept = new Map<string, T>();

  /** The kept copy of a value, if there is one, and else the value itself. @param fingerprint where it may be found. */
  of(fingerprint: string, value: T): T {
    const known = this.#kept.get(fingerprint);
    // A fingerprint is what a journal says of itself, and another tenant's journal may say anything.
    if (known && isDeepStrictEqual(known, value)) return known;
    this.#kept.delete(fingerprint);
    this.#kept.set(fingerprint, value);
    if (this.#kept.size > KEPT_MAX) this.#kept.delete(this.#kept.keys().next().value as string);
    return value;
  }
}
