/**
 * The commit of one record. An append without an answer is repeated with the identical bytes. If the fence then refuses it, the
 * first record after the fence decides: it is this record, or another writer's (RUNNER-10).
 */
import type { AppendResult, Clock, Journal, StoredRecord } from '@coxswain/ports';
import { delayAfter, deletionSentence, type SessionRef, tombstoneIn } from '@coxswain/protocol';
import { isRecordTooLarge, sha256Hex } from './seal-record.ts';

/**
 * The result of a commit. `foreign`: another writer's record is at this position. `deleted`: a tombstone is at this position.
 * `unavailable`: the result is unknown; the session must be loaded again before it continues.
 */
export type CommitResult =
  | { readonly status: 'stored'; readonly fence: number }
  | { readonly status: 'foreign'; readonly attempt: string }
  | { readonly status: 'deleted'; readonly message: string }
  | { readonly status: 'unavailable'; readonly cause: string };

/** Bounds for retries of an append. */
export interface CommitBounds {
  readonly attemptsMax: number;
  readonly firstDelayMs: number;
  readonly maxDelayMs: number;
}

/** About one minute of pauses, without the time of the attempts: longer than a leader election of a stream, short enough for a person who waits. */
export const COMMIT_BOUNDS: CommitBounds = { attemptsMax: 40, firstDelayMs: 25, maxDelayMs: 2_000 };

/**
 * Appends sealed bytes at a fence. A failure of the journal is a result, not an exception.
 * @throws RecordTooLargeError if the journal does not take a record of this size.
 */
export async function commit(
  journal: Journal,
  clock: Clock,
  ref: SessionRef,
  sealed: { readonly bytes: Uint8Array; readonly hash: string },
  fence: number,
  hasLeft: () => boolean,
  bounds: CommitBounds = COMMIT_BOUNDS,
): Promise<CommitResult> {
  let cause = '';
  const backOff = { firstMs: bounds.firstDelayMs, maxMs: bounds.maxDelayMs };
  for (let attempt = 1; attempt <= bounds.attemptsMax; attempt++) {
    const result = await append(journal, ref, sealed.bytes, fence);
    if (result.status === 'stored') return result;
    if (result.status === 'refused') {
      const settled = await settle(journal, ref, sealed.hash, fence);
      if (settled) return settled;
      cause = 'the append was rejected, and the conflicting record cannot be read';
    } else cause = result.cause;
    if (hasLeft()) break;
    await clock.sleep(delayAfter(attempt, backOff));
    // The runner may have left the session during the pause (RUNNER-10).
    if (hasLeft()) break;
  }
  return { status: 'unavailable', cause };
}

// A closed adapter rejects. Like a missing answer, that says nothing about the record.
async function append(journal: Journal, ref: SessionRef, bytes: Uint8Array, fence: number): Promise<AppendResult> {
  try {
    return await journal.append(ref, bytes, fence);
  } catch (error) {
    if (isRecordTooLarge(error)) throw error;
    return { status: 'ambiguous', cause: (error as Error).message };
  }
}

async function settle(journal: Journal, ref: SessionRef, hash: string, fence: number): Promise<CommitResult | null> {
  let first: StoredRecord | null;
  try {
    first = await journal.firstAfter(ref, fence);
  } catch {
    // The leader is unreachable. The next attempt is refused in the same way and asks again.
    return null;
  }
  if (first === null) return null;
  if (sha256Hex(first.bytes) === hash) return { status: 'stored', fence: first.fence };
  return foreignRecord(first.bytes);
}

/** Describes the record of another writer, or the tombstone, from its bytes. */
export function foreignRecord(bytes: Uint8Array): Extract<CommitResult, { status: 'foreign' | 'deleted' }> {
  const tombstone = tombstoneIn(bytes);
  if (tombstone) return { status: 'deleted', message: deletionSentence(tombstone) };
  return { status: 'foreign', attempt: attemptOf(bytes) };
}

/** The `attempt` of a record: which host wrote it. */
function attemptOf(bytes: Uint8Array): string {
  try {
    const { attempt } = JSON.parse(Buffer.from(bytes).toString('utf8')) as { attempt?: unknown };
    return typeof attempt === 'string' ? attempt : '';
  } catch {
    // The bytes are not a record of Coxswain.
    return '';
  }
}
