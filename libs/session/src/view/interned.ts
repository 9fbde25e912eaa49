/** One shared copy of equal values: many sessions of a host read the same value, each from its own journal. */
import { isDeepStrictEqual } from 'node:util';

/** Maximum number of values that are kept. Beyond it the oldest is forgotten: later sessions do not share it. */
const KEPT_MAX = 256;

/** Keeps one value per fingerprint. Callers must not modify the values that it returns. */
export class Interned<T extends object> {
  readonly #kept = new Map<string, T>();

  /**
   * Returns the kept value of this fingerprint, if it equals the given value. Otherwise keeps and returns the given
   * value.
   */
  of(fingerprint: string, value: T): T {
    const known = this.#kept.get(fingerprint);
    // A journal states its own fingerprint, and another tenant's journal may state anything: compare the values.
    if (known && isDeepStrictEqual(known, value)) return known;
    this.#kept.delete(fingerprint);
    this.#kept.set(fingerprint, value);
    if (this.#kept.size > KEPT_MAX) this.#kept.delete(this.#kept.keys().next().value as string);
    return value;
  }
}
