/** Appends one record: its large fields go into the object store first, then the record into the journal. */
import type { Blobs, Clock, Journal } from '@coxswain/ports';
import type { SessionRef } from '@coxswain/protocol';
import { type CommitBounds, type CommitResult, commit } from '../journal/commit.ts';
import type { SealedRecord } from '../journal/seal-record.ts';

/** The stores of a record. */
export interface RecordPorts {
  readonly journal: Journal;
  readonly blobs: Blobs;
  readonly clock: Clock;
}

/**
 * Stores the large fields of a record, then appends the record at a fence.
 * @param hasLeft whether the runner has left the session meanwhile: then nothing more is sent.
 * @returns how the append ended. A store that fails or does not answer is the result `unavailable`, not an exception.
 * @throws RecordTooLargeError if the journal does not take a record of this size.
 */
export async function appendRecord(
  { journal, blobs, clock }: RecordPorts,
  ref: SessionRef,
  sealed: SealedRecord,
  fence: number,
  hasLeft: () => boolean,
  bounds: CommitBounds,
): Promise<CommitResult> {
  try {
    // Before the record that refers to them, so that a journal never refers to a missing blob.
    for (const blob of sealed.blobs) await blobs.put(blob.sha256, blob.bytes);
  } catch (error) {
    return { status: 'unavailable', cause: `the object store: ${(error as Error).message}` };
  }
  if (hasLeft()) return { status: 'unavailable', cause: 'this host released the session' };
  return commit(journal, clock, ref, sealed, fence, hasLeft, bounds);
}
