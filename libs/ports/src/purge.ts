/**
 * The purge port, for administrators of a bus only. It removes data that is no longer needed.
 */
import type { SessionRef } from '@coxswain/protocol';

/** Bytes in the store of blobs. */
export interface StoredBlob {
  readonly sha256: string;
  /** When they were stored last, milliseconds since 1970: bytes that are put again after a while count as new. */
  readonly storedAtMs: number;
  /** Changes whenever they are stored again. */
  readonly revision: number;
}

/** How far deletions were read, by journal stream: the next position to read. */
export type DeletionPlace = Readonly<Record<string, number>>;

/** Deletions behind a place. */
export interface DeletedSince {
  readonly place: DeletionPlace;
  readonly refs: readonly SessionRef[];
  readonly isAtEnd: boolean;
}

/** Times that a retention job keeps, milliseconds from the deletion on. */
export interface PurgesWithin {
  /** Records, timers and snapshots. */
  readonly recordsMs: number;
  /** Large fields and files that no other session refers to. */
  readonly filesMs: number;
}

/** The retention job of a bus, as session hosts see it. */
export interface Retention {
  /** Within what time a session that is deleted now is purged; null where no retention job answers. Contract: does not reject. */
  purgesWithin(): Promise<PurgesWithin | null>;
}

/** Removes the data of deleted sessions. Removing missing data is not an error. */
export interface Purge {
  /** Changes nothing. Rejects if the caller has no right to purge, so that no purge starts that cannot finish. */
  check(): Promise<void>;
  /** Deletes the records of a session that stand before `fence`; the one at it stays. */
  journalBefore(ref: SessionRef, fence: number): Promise<void>;
  /** Whether a session has records before `fence`. */
  hasBefore(ref: SessionRef, fence: number): Promise<boolean>;
  /** Deletes a session's snapshots. */
  snapshots(ref: SessionRef): Promise<void>;
  /** Deletes a session's timers that are still to come. */
  timers(ref: SessionRef): Promise<void>;
  /** The store's own time, milliseconds since 1970: what `storedAtMs` is measured with. */
  nowMs(): Promise<number>;
  /**
   * The sessions that were deleted behind a place, in no order, and the place that was read up to: null starts at the end of what
   * is stored now. One call reads a bounded part; the place tells the next call where to go on, and `isAtEnd` whether to.
   */
  deletedSince(place: DeletionPlace | null): Promise<DeletedSince>;
  /** All tenants that have a session, or had one. */
  tenants(): Promise<readonly string[]>;
  /**
   * The bytes of every record of every session: all that was appended before the call, and some of what comes meanwhile.
   * @throws where not all of it can be read.
   */
  records(): AsyncIterable<Uint8Array>;
  /** What the store of blobs holds. */
  blobs(): AsyncIterable<StoredBlob>;
  /** Deletes a blob unless it was stored again since. @returns whether it did. */
  blob(blob: StoredBlob): Promise<boolean>;
}
