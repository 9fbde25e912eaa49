/** The purge port, for administrators of a bus only. It removes data that is no longer needed. */
import type { SessionRef } from '@coxswain/protocol';

/** One stored blob. */
export interface StoredBlob {
  readonly sha256: string;
  /** When the blob was last stored or renewed, in milliseconds since 1970. A renewed blob counts as new. */
  readonly storedAtMs: number;
  /** Changes when the blob is stored again or renewed. */
  readonly revision: number;
}

/** The progress of reading deletions: the next position to read, by journal stream. */
export type DeletionPlace = Readonly<Record<string, number>>;

/** Deletions after a position. */
export interface DeletedSince {
  readonly place: DeletionPlace;
  readonly refs: readonly SessionRef[];
  readonly isAtEnd: boolean;
}

/** Times within which the retention job purges, in milliseconds after the deletion. */
export interface PurgesWithin {
  /** Records, timers and snapshots. */
  readonly recordsMs: number;
  /** Large fields and files without a reference from another session. */
  readonly filesMs: number;
}

/** The retention job of a bus, as session hosts see it. */
export interface Retention {
  /**
   * The time within which a session that is deleted now is purged; null if no retention job answers. Contract: does not
   * reject because a job is missing.
   */
  purgesWithin(): Promise<PurgesWithin | null>;
}

/** Removes the data of deleted sessions. It is not an error if the data does not exist. */
export interface Purge {
  /**
   * Checks the right to purge, and changes nothing. Rejects without it, so that a purge without the right does not
   * start.
   */
  check(): Promise<void>;
  /** Deletes the records of a session before the position `fence`. The record at `fence` stays. */
  journalBefore(ref: SessionRef, fence: number): Promise<void>;
  /** Whether a session has records before `fence`. */
  hasBefore(ref: SessionRef, fence: number): Promise<boolean>;
  /** Deletes a session's snapshots. */
  snapshots(ref: SessionRef): Promise<void>;
  /** Deletes a session's pending timers. */
  timers(ref: SessionRef): Promise<void>;
  /** The store's own time, in milliseconds since 1970. `storedAtMs` is a time of the same clock. */
  nowMs(): Promise<number>;
  /**
   * Reads a bounded part of the deletions after a position.
   * @param place the `place` of the previous result. Null reads nothing, and returns the current end of the journals.
   * @returns the sessions, in no order, and the position for the next call. `isAtEnd`: there are no more deletions now.
   */
  deletedSince(place: DeletionPlace | null): Promise<DeletedSince>;
  /** All tenants with stored journals. A deleted session counts until its tombstone is removed. */
  tenants(): Promise<readonly string[]>;
  /**
   * The bytes of every record of every session: all records that were appended before the call, and possibly later
   * ones. A record that is purged meanwhile may be missing, but then a fork of it that was made meanwhile is not.
   * @throws if not all of them can be read.
   */
  records(): AsyncIterable<Uint8Array>;
  /** All stored blobs. */
  blobs(): AsyncIterable<StoredBlob>;
  /** Deletes a blob, unless it was stored again since. @returns whether the blob was deleted. */
  blob(blob: StoredBlob): Promise<boolean>;
}
