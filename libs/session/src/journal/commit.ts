/**
 * The commit: one append, settled. An append without an answer is sent again with the identical bytes and nothing else;
 * what the fence then refuses is settled by reading the first record after it: mine, or a foreign one (R10).
 */
import type { AppendResult, Clock, Journal, StoredRecord } from '@coxswain/ports';
import { delayAfter, deletionSentence, type SessionRef, tombstoneIn } from '@coxswain/protocol';
import { isRecordTooLarge, sha256Hex } from './seal-record.ts';

/**
 * How a commit ended. `foreign`: another record stands first, and who wrote it. `deleted`: a tombstone does, and what it
 * says. `unavailable`: nobody knows; the session must be refolded before it goes on.
 */
export type CommitResult =
  | { readonly status: 'stored'; readonly fence: number }
  | { readonly status: 'foreign'; readonly attempt: string }
  | { readonly status: 'deleted'; readonly message: string }
  | { readonly status: 'unavailable'; readonly cause: string };

/** How long an append is tried. */
export interface CommitBounds {
  readonly attemptsMax: number;
  readonly firstDelayMs: number;
  readonly maxDelayMs: number;
}

/** About a minute: longer than a stream's leader election, shorter than a person's patience. */
export const COMMIT_BOUNDS: CommitBounds = { attemptsMax: 40, firstDelayMs: 25, maxDelayMs: 2_000 };

/** Appends sealed bytes at a fence. Never rejects because of the journal; every doubt is a result. */
export async function commit(
  journal: Journal,
  clock: Clock,
  ref: SessionRef,
  sealed: { readonly bytes: Uint8Array; readonly hash: string },
  fence: number,
  isDropped: () => boolean,
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
    if (isDropped()) break;
    await clock.sleep(delayAfter(attempt, backOff));
    // The session may have been left while this slept (R10).
    if (isDropped()) break;
  }
  return { status: 'unavailable', cause };
}

// An adapter that is closed under the host rejects: that is no answer either, and no verdict on what was to be recorded.
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
    // The leader cannot be asked now; the append is tried again and refused again, so the question comes back.
    return null;
  }
  if (first === null) return null;
  if (sha256Hex(first.bytes) === hash) return { status: 'stored', fence: first.fence };
  return foreignRecord(first.bytes);
}

/** Whose record it is that another's stands behind. */
export function foreignRecord(bytes: Uint8Array): Extract<CommitResult, { status: 'foreign' | 'deleted' }> {
  const tombstone = tombstoneIn(bytes);
  if (tombstone) return { status: 'deleted', message: deletionSentence(tombstone) };
  return { status: 'foreign', attempt: attemptOf(bytes) };
}

/** Who wrote a record, as far as its bytes say so. */
function attemptOf(bytes: Uint8Array): string {
  try {
    const { attempt } = JSON.parse(Buffer.from(bytes).toString('utf8')) as { attempt?: unknown };
    return typeof attempt === 'string' ? attempt : '';
  } catch {
    // What stands there is no record of ours, whoever wrote it.
    return '';
  }
}
