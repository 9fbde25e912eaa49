import { type SessionRef, sessionKey } from '@coxswain/protocol';
import type { InspectedFold } from '@coxswain/session';

/**
 * Machines of sessions at places in the middle of their journals, so that an inspector of a long session continues from
 * there instead of the first record. This is a cache of the journal's fold: a made state does not change, and a missing
 * one costs time alone.
 */
export class KeptFolds {
  readonly #most: number;
  /** The one that was used last stands last. */
  readonly #folds = new Map<string, InspectedFold>();

  /** @param most sessions of which one is kept. */
  constructor(most: number) {
    this.#most = most;
  }

  /** A fold from which record `from` can be reached; null where none is kept. */
  before(ref: SessionRef, from: number): InspectedFold | null {
    const fold = this.#folds.get(sessionKey(ref));
    if (fold === undefined || fold.n >= from) return null;
    this.#put(ref, fold);
    return fold;
  }

  /** Keeps a fold, where none of a later record is kept. */
  keep(ref: SessionRef, fold: InspectedFold): void {
    const known = this.#folds.get(sessionKey(ref));
    if (fold.n > (known?.n ?? 0)) this.#put(ref, fold);
  }

  /** Keeps nothing of a session whose journal does not go on as it was folded. */
  forget(ref: SessionRef): void {
    this.#folds.delete(sessionKey(ref));
  }

  #put(ref: SessionRef, fold: InspectedFold): void {
    this.#folds.delete(sessionKey(ref));
    this.#folds.set(sessionKey(ref), fold);
    if (this.#folds.size <= this.#most) return;
    const [oldest] = this.#folds.keys();
    if (oldest !== undefined) this.#folds.delete(oldest);
  }
}
