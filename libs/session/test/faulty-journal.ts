/**
 * A journal with faults of the test. It records every attempted append.
 */
import type { AppendResult, Journal, StoredRecord } from '@coxswain/ports';
import type { SessionRef } from '@coxswain/protocol';

/**
 * The fault of one append. `lost`: not stored, no answer. `unanswered`: stored, no answer. `throws`: the adapter breaks
 * its contract. A function decides itself.
 */
export type AppendFault =
  | 'none'
  | 'lost'
  | 'unanswered'
  | 'throws'
  | ((append: () => Promise<AppendResult>, tried: Tried) => Promise<AppendResult>);

/** One attempted append. */
export interface Tried {
  readonly ref: SessionRef;
  readonly bytes: Uint8Array;
  readonly fence: number;
}

/** A journal with faults. */
export class FaultyJournal implements Journal {
  readonly tried: Tried[] = [];
  /** The faults of the next appends in order; then {@link always}. */
  next: AppendFault[] = [];
  always: AppendFault = 'none';
  /** If set, reads fail with it. */
  unreadable: Error | null = null;
  /** Sessions with deleted journals. */
  readonly gone = new Set<string>();
  readonly #journal: Journal;

  constructor(journal: Journal) {
    this.#journal = journal;
  }

  async append(ref: SessionRef, bytes: Uint8Array, fence: number): Promise<AppendResult> {
    const tried = { ref, bytes, fence };
    this.tried.push(tried);
    const fault = this.next.shift() ?? this.always;
    const append = () => this.#journal.append(ref, bytes, fence);
    if (typeof fault === 'function') return fault(append, tried);
    if (fault === 'throws') throw new Error('the adapter is broken');
    if (fault === 'lost') return { status: 'ambiguous', cause: 'no answer' };
    const result = await append();
    return fault === 'unanswered' && result.status === 'stored' ? { status: 'ambiguous', cause: 'no answer' } : result;
  }

  async firstAfter(ref: SessionRef, fence: number): Promise<StoredRecord | null> {
    if (this.unreadable) throw this.unreadable;
    return this.#journal.firstAfter(ref, fence);
  }

  async *read(ref: SessionRef, fence?: number): AsyncIterable<StoredRecord> {
    if (this.unreadable) throw this.unreadable;
    if (this.gone.has(ref.sessionId)) return;
    yield* this.#journal.read(ref, fence);
  }

  async last(ref: SessionRef): Promise<StoredRecord | null> {
    if (this.unreadable) throw this.unreadable;
    return this.#journal.last(ref);
  }

  sessions(tenant: string): AsyncIterable<SessionRef> {
    return this.#journal.sessions(tenant);
  }

  sessionsOf(partition: number): AsyncIterable<SessionRef> {
    return this.#journal.sessionsOf(partition);
  }
}
