/**
 * The journal from which a fork is made. The check of the fork (plan-fork.ts) and the copy (copy-journal.ts) share one
 * read of the records, up to a size limit. The copy reads the rest again.
 */
import type { Journal } from '@coxswain/ports';
import { deletionSentence, type SessionRef, tombstoneIn } from '@coxswain/protocol';

/** Maximum bytes of records that one {@link OriginRecords} keeps in memory. */
const KEPT_BYTES_MAX = 8 * 1024 * 1024;

/** The origin cannot be read at present; a retry may succeed. */
export class OriginAwayError extends Error {}

/** Reads the records of a copy's origin. */
export class OriginRecords {
  readonly sessionId: string;
  readonly #journal: Journal;
  readonly #ref: SessionRef;
  readonly #kept: Uint8Array[] = [];
  #keptBytes = 0;
  /** Position of the last kept record. */
  #fence = 0;
  #isFull = false;

  constructor(journal: Journal, ref: SessionRef) {
    this.sessionId = ref.sessionId;
    this.#journal = journal;
    this.#ref = ref;
  }

  /**
   * A sentence about the deletion of the origin; null if it is not deleted. Records of a deleted session may still
   * exist, but must not be copied.
   * @throws OriginAwayError as {@link OriginRecords.read}.
   */
  async deleted(): Promise<string | null> {
    const last = await this.#journal.last(this.#ref).catch((cause: Error) => {
      throw new OriginAwayError(`the journal of ${this.sessionId}: ${cause.message}`, { cause });
    });
    const tombstone = last && tombstoneIn(last.bytes);
    return tombstone ? deletionSentence(tombstone) : null;
  }

  /**
   * All records, from the first. Only one reader at a time.
   * @throws OriginAwayError for each error of the journal: such an error says nothing about the content of the origin.
   */
  async *read(): AsyncGenerator<Uint8Array, void, undefined> {
    yield* this.#kept;
    const records = this.#journal.read(this.#ref, this.#fence)[Symbol.asyncIterator]();
    try {
      for (;;) {
        const next = await records.next().catch((cause: Error) => {
          throw new OriginAwayError(`the journal of ${this.sessionId}: ${cause.message}`, { cause });
        });
        if (next.done) return;
        this.#keep(next.value);
        yield next.value.bytes;
      }
    } finally {
      await records.return?.();
    }
  }

  #keep({ bytes, fence }: { readonly bytes: Uint8Array; readonly fence: number }): void {
    this.#isFull ||= this.#keptBytes + bytes.length > KEPT_BYTES_MAX;
    if (this.#isFull) return;
    this.#kept.push(bytes);
    this.#keptBytes += bytes.length;
    this.#fence = fence;
  }
}
