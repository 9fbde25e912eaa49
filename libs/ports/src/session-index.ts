/**
 * The index of sessions: one small entry for each session, from which lists are read.
 *
 * INDEX-1  A session has an entry before it has a record.
 * INDEX-2  An entry that shows a session is exact: before a host writes the next record, it replaces the entry by a mark.
 * INDEX-3  A reader of a mark reads the session's newest record instead.
 *
 * The index can be lost: a session without an entry is found by its journal and gets an entry again.
 */
import type { ListedSessionDocument, SessionRef } from '@coxswain/protocol';

/** Writes entries. All methods reject with the errors of the store. */
export interface SessionIndex {
  /**
   * Replaces the entry of a session by a mark: its journal is about to change. Durable when it resolves.
   * @returns the revision of the mark, from 1.
   */
  mark(ref: SessionRef): Promise<number>;
  /**
   * Stores what lists show of a session, unless another entry has replaced the one of this revision.
   * @param revision of the entry that it replaces; 0: the session has no entry.
   * @returns whether the entry was stored.
   */
  put(ref: SessionRef, entry: ListedSessionDocument, revision: number): Promise<boolean>;
  /** Removes the entry of a session that has no journal: it was marked for a command that started nothing. */
  prune(ref: SessionRef): Promise<void>;
  /** All sessions that have a journal and no entry: almost always none, which a few requests tell. */
  missing(): Promise<readonly SessionRef[]>;
}
