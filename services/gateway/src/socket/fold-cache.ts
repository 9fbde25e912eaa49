import { type SessionRef, sessionKey } from '@coxswain/protocol';
import type { InspectedFold } from '@coxswain/session';
import { GATEWAY_BOUNDS } from '../context/mod.ts';

/**
 * Caches machines of sessions at positions within their journals, so that an inspector of a long session need not start
 * at the first record. A missing entry costs only time.
 */
export class FoldCache {
  readonly #max: number;
  /** In order of last use, the oldest first. */
  readonly #folds = new Map<string, InspectedFold>();

  /** @param max maximum number of sessions with a kept fold. */
  constructor(max: number) {
    this.#max = max;
  }

  /** A fold before record `from`; null if none is kept. */
  before(ref: SessionRef, from: number): InspectedFold | null {
    const fold = this.#folds.get(sessionKey(ref));
    if (fold === undefined || fold.n >= from) return null;
    this.#put(ref, fold);
    return fold;
  }

  /** Keeps a fold, unless one of a later record is kept, or it is too large. */
  keep(ref: SessionRef, fold: InspectedFold): void {
    const known = this.#folds.get(sessionKey(ref));
    if (fold.n <= (known?.n ?? 0)) return;
    // A state with many queued messages has megabytes.
    if (JSON.stringify(fold.state.context).length <= GATEWAY_BOUNDS.keptFoldMaxChars) this.#put(ref, fold);
  }

  /** Drops the fold of a session whose journal does not match it. */
  forget(ref: SessionRef): void {
    this.#folds.delete(sessionKey(ref));
  }

  #put(ref: SessionRef, fold: InspectedFold): void {
    this.#folds.delete(sessionKey(ref));
    this.#folds.set(sessionKey(ref), fold);
    if (this.#folds.size <= this.#max) return;
    const [oldest] = this.#folds.keys();
    if (oldest !== undefined) this.#folds.delete(oldest);
  }
}
