/**
 * A host's marks and entries in the index of sessions. A failed write delays no session: it is owed, and repeated by
 * `keepIndexFilled` (fill-index.ts) once the index works again. Until then further writes are owed without a try.
 *
 * A passivated or deleted session keeps its note while its write is owed. So if this host crashes, the next one finds
 * the note and marks the session.
 */
import type { Log, SessionIndex } from '@coxswain/ports';
import { type SessionIndexEntry, type SessionRef, subjects } from '@coxswain/protocol';
import { forEachConcurrent } from './load-limit.ts';

/**
 * Maximum number of owed writes. A write beyond it is dropped. Its session is written to the index when it leaves
 * memory, or when a host finds its note. If the session has no entry at all, the next search finds it (fill-index.ts).
 */
const OWED_MAX = 10_000;
/** Owed writes that are repeated at a time. */
const REPEATED_AT_ONCE = 8;

type Write = (index: SessionIndex) => Promise<unknown>;

/**
 * What the index gets of a session that leaves memory:
 * - its entry, which lists show
 * - `mark`: a mark, so that lists read its journal
 * - `prune`: nothing, and a session without a journal loses its mark (`SessionIndex.prune`)
 */
export type IndexUpdate = SessionIndexEntry | 'mark' | 'prune';

interface Owed {
  readonly again: Write;
  readonly onStored: () => Promise<void>;
}

/** Writes to the index, and remembers what is owed. Without an index it writes nothing. */
export class IndexWrites {
  readonly #index: SessionIndex | undefined;
  readonly #log: Log;
  readonly #owed = new Map<string, Owed>();
  #problem: string | null = null;

  constructor({ index, log }: { readonly index?: SessionIndex | undefined; readonly log: Log }) {
    this.#index = index;
    this.#log = log;
  }

  /** Why the index cannot be written now, one sentence; null if it works. */
  get problem(): string | null {
    return this.#problem;
  }

  /** Marks a session. Contract: does not reject. @returns the revision of the mark; 0 if it is owed, and without an index. */
  async mark(ref: SessionRef): Promise<number> {
    let revision = 0;
    const mark = async (index: SessionIndex) => {
      revision = await index.mark(ref);
    };
    await this.#write(
      ref,
      mark,
      (index) => index.mark(ref),
      async () => undefined,
    );
    return revision;
  }

  /**
   * Updates the index for a session that leaves memory.
   * @param mark the revision of this host's mark; 0 if none is known.
   * @param onStored called once this is written; at once without an index; never if the write is dropped. An owed entry
   *   is repeated as a mark. Errors of `onStored` are thrown here, or logged if it is called later.
   */
  async update(ref: SessionRef, update: IndexUpdate, mark: number, onStored: () => Promise<void>): Promise<void> {
    const again: Write = (index) => (update === 'prune' ? index.prune(ref) : index.mark(ref));
    const write: Write = async (index) => {
      // If `put` stores nothing, another host has marked the session since, and may have stored its own entry: a mark
      // is right in any case.
      if (typeof update === 'string' || !(await index.put(ref, update, mark))) await again(index);
    };
    await this.#write(ref, write, again, onStored);
  }

  /** Drops the owed write of a session: a newer write replaces it, or the next host of the session marks it. */
  forget(ref: SessionRef): void {
    this.#owed.delete(subjects.sessionEntry(ref));
  }

  /** Notes that the index cannot be written or read. Until {@link repeatOwed} succeeds, logs only the first failure. */
  failed(error: unknown): void {
    const { message } = error as Error;
    if (this.#problem === null)
      this.#log.warn(
        { error: message },
        'the index of sessions cannot be written now: sessions continue, and lists may be slow or out of date',
      );
    this.#problem = `the index of sessions cannot be written: ${message}`;
  }

  /** Repeats what is owed. Rejects where the index cannot be written: the rest is still owed. */
  async repeatOwed(): Promise<void> {
    const index = this.#index;
    if (!index) return;
    while (this.#owed.size > 0) {
      await forEachConcurrent(
        [...this.#owed],
        async ([key, owed]) => {
          if (this.#owed.get(key) !== owed) return;
          await owed.again(index);
          if (this.#owed.get(key) === owed) this.#owed.delete(key);
          await owed.onStored().catch((error: Error) => {
            this.#log.warn({ error: error.message }, 'the note of a session was not removed');
          });
        },
        REPEATED_AT_ONCE,
      );
    }
    if (this.#problem !== null) this.#log.info({}, 'the index of sessions is written again');
    this.#problem = null;
  }

  async #write(ref: SessionRef, write: Write, again: Write, onStored: () => Promise<void>): Promise<void> {
    this.forget(ref);
    if (!this.#index || (this.#problem === null && (await this.#isWritten(write, this.#index)))) return onStored();
    if (this.#owed.size < OWED_MAX) this.#owed.set(subjects.sessionEntry(ref), { again, onStored });
  }

  async #isWritten(write: Write, index: SessionIndex): Promise<boolean> {
    try {
      await write(index);
      return true;
    } catch (error) {
      this.failed(error);
      return false;
    }
  }
}
