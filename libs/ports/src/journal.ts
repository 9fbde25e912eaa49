/**
 * The journal port: one append-only sequence of byte strings per session.
 *
 * The **fence** (fencing token) of an append is the position of the newest record that the writer knows. The store refuses
 * the append if the session has a later record. So a host that another one has replaced can write nothing more.
 */
import type { SessionRef } from '@coxswain/protocol';

/** One stored record: its bytes exactly as appended, and its position: the fence of the append that follows it. */
export interface StoredRecord {
  readonly bytes: Uint8Array;
  /** The record's position in the store. 0 is the position before a session's first record. */
  readonly fence: number;
}

/**
 * The outcome of an append.
 * - `stored`: the record is durable.
 * - `refused`: the fence is not the position of the newest record. This request wrote nothing.
 * - `ambiguous`: without an answer the outcome is unknown. To settle it, append the identical bytes again.
 */
export type AppendResult =
  | { readonly status: 'stored'; readonly fence: number }
  | { readonly status: 'refused' }
  | { readonly status: 'ambiguous'; readonly cause: string };

/** The event logs of sessions. */
export interface Journal {
  /**
   * Appends one record if the position of the session's newest record is `fence`.
   * Contract: rejects only if the adapter is closed or the bytes exceed the limit. An unknown outcome is `ambiguous`.
   * @param bytes at most 512 KiB.
   */
  append(ref: SessionRef, bytes: Uint8Array, fence: number): Promise<AppendResult>;
  /** The first record after `fence`, or null. Read from the stream's leader, which decides writes. */
  firstAfter(ref: SessionRef, fence: number): Promise<StoredRecord | null>;
  /**
   * All records after `fence`, in order, up to the newest at the time of the call. Empty for an unknown session. A
   * damaged replica may omit records, which the hash chain reveals. The newest record is never omitted.
   * @param upTo the position of a known record. Reading ends with it, or with the next record if it was deleted, and
   *   does not request the newest.
   */
  read(ref: SessionRef, fence?: number, upTo?: number): AsyncIterable<StoredRecord>;
  /**
   * The newest record, or null for an unknown session.
   * @throws an error with the code `record_unreadable` if the store reports a newest record that no replica serves.
   */
  last(ref: SessionRef): Promise<StoredRecord | null>;
  /** All sessions of a tenant that have at least one record. */
  sessions(tenant: string): AsyncIterable<SessionRef>;
  /** All sessions of a partition that have at least one record, of every tenant. */
  sessionsOf(partition: number): AsyncIterable<SessionRef>;
}
