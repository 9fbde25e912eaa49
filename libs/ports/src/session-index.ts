/**
 * The index of sessions: one small entry for each session. Lists of sessions are read from it.
 *
 * INDEX-1  A session has an entry before it has a record.
 * INDEX-2  An entry with data of a session is exact: before a host writes the next record, it replaces the entry by a
 *          mark.
 * INDEX-3  A reader that finds a mark reads the session's newest record instead.
 *
 * No session waits for an index that fails. Then the first two rules do not hold until the host has repeated its writes.
 * The index can be rebuilt: a session without an entry is found by its journal, and gets an entry again.
 */
import type { SessionIndexEntry, SessionRef } from '@coxswain/protocol';

/** Writes entries of the index. All methods reject with the errors of the store. */
export interface SessionIndex {
  /**
   * Replaces a session's entry by a mark, because its journal is about to change. Durable when it resolves.
   * @returns the revision of the mark, from 1.
   */
  mark(ref: SessionRef): Promise<number>;
  /**
   * Stores the entry of a session for lists, unless the entry has a newer revision than the given one.
   * @param revision the revision of the entry to replace; 0 if the session has none.
   * @returns whether the entry was stored.
   */
  put(ref: SessionRef, entry: SessionIndexEntry, revision: number): Promise<boolean>;
  /** Removes the entry of a session without a journal: it was marked for a command that did not start the session. */
  prune(ref: SessionRef): Promise<void>;
  /** All sessions that have a journal and no entry. */
  missing(): Promise<readonly SessionRef[]>;
  /**
   * Creates the store of the index if it is missing.
   * @returns the identity of the store. Another one than before: the index was lost.
   */
  ensure(): Promise<string>;
}
