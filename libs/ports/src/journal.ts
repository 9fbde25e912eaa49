/** The journal port: one append-only sequence of byte strings per session, fenced. */
import type { SessionRef } from '@coxswain/protocol';

/** One stored record: its bytes exactly as appended, and the position that fences the next append. */
export interface StoredRecord {
  readonly bytes: Uint8Array;
  /** The store's position of this record. 0 is the position before a session's first record. */
  readonly fence: number;
}

/**
 * What became of an append.
 * `stored`: durable. `refused`: the fence was wrong, nothing was written by this send.
 * `ambiguous`: no answer; it may or may not have been written. Settle it by sending the identical bytes again.
 */
export type AppendResult =
  | { readonly status: 'stored'; readonly fence: number }
  | { readonly status: 'refused' }
  | { readonly status: 'ambiguous'; readonly cause: string };

/** Where records are kept. */
export interface Journal {
  /**
   * Appends one record if the session's newest record still stands at `fence`.
   * Contract: rejects only when the adapter is closed or the bytes are over the bound; every doubt is `ambiguous`.
   * @param bytes at most 512 KiB.
   */
  append(ref: SessionRef, bytes: Uint8Array, fence: number): Promise<AppendResult>;
  /** The first record after `fence`, read where writes are decided (the stream's leader), or null. */
  firstAfter(ref: SessionRef, fence: number): Promise<StoredRecord | null>;
  /**
   * All records after `fence`, in order, up to the newest at the time of the call. Empty for an unknown session. A
   * damaged replica may omit records in between, which the hash chain shows; the newest is never omitted.
   * @param upTo the place of a known record: reading ends with it, or with the next one if it is gone, without a
   *   request for the newest.
   */
  read(ref: SessionRef, fence?: number, upTo?: number): AsyncIterable<StoredRecord>;
  /**
   * The newest record, or null for an unknown session.
   * @throws an error with the code `record_unreadable` where the store reports one, and no replica serves it.
   */
  last(ref: SessionRef): Promise<StoredRecord | null>;
  /** All sessions of a tenant that have a record. */
  sessions(tenant: string): AsyncIterable<SessionRef>;
  /** All sessions of a partition that have a record, of every tenant. */
  sessionsOf(partition: number): AsyncIterable<SessionRef>;
}
