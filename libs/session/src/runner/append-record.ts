/** One record into the store: its large fields first, then the record itself. */
import type { Blobs, Clock, Journal } from '@coxswain/ports';
import type { SessionRef } from '@coxswain/protocol';
import { type CommitBounds, type CommitResult, commit } from '../journal/commit.ts';
import type { SealedRecord } from '../journal/seal-record.ts';

/** What a record is written to. */
export interface RecordPorts {
  readonly journal: Journal;
  readonly blobs: Blobs;
  readonly clock: Clock;
}

/**
 * Writes a record at a fence. Never rejects because of a store; every doubt is a result.
 * @param isLeft whether the session was left meanwhile: nothing more is sent then.
 */
export async function appendRecord(
  { journal, blobs, clock }: RecordPorts,
  ref: SessionRef,
  sealed: SealedRecord,
  fence: number,
  isLeft: () => boolean,
  bounds: CommitBounds,
): Promise<CommitResult> {
  try {
    // Before the record that refers to them: a journal never points at what is not there.
    for (const blob of sealed.blobs) await blobs.put(blob.sha256, blob.bytes);
  } catch (error) {
    return { status: 'unavailable', cause: `the object store: ${(error as Error).message}` };
  }
  if (isLeft()) return { status: 'unavailable', cause: 'this host released the session' };
  return commit(journal, clock, ref, sealed, fence, isLeft, bounds);
}
