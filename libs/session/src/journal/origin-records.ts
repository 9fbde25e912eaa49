/**
 * The journal that a copy is made from. Who looks at it first and copies it then reads it once, as far as it may be kept;
 * what is more than that is read again, from there on.
 */
import type { Journal } from '@coxswain/ports';
import { deletionSentence, type SessionRef, tombstoneIn } from '@coxswain/protocol';

/** Bytes of records that are kept while a copy is made. */
const KEPT_BYTES_MAX = 8 * 1024 * 1024;

/** The origin cannot be read now; it may be in a moment. */
export class OriginAwayError extends Error {}

/** See the top of the file. */
export class OriginRecords {
  readonly sessionId: string;
  readonly #journal: Journal;
  readonly #ref: SessionRef;
  readonly #kept: Uint8Array[] = [];
  #keptBytes = 0;
  /** Where the last kept record stands. */
  #fence = 0;
  #isFull = false;

  constructor(journal: Journal, ref: SessionRef) {
    this.sessionId = ref.sessionId;
    this.#journal = journal;
    this.#ref = ref;
  }

  /**
   * That and when the session was deleted, or null. Its records may be there still, and are nothing to be copied any more.
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
   * All records, from the first. One reading at a time.
   * @throws OriginAwayError where the store cannot be reached: that is no verdict on the origin.
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
