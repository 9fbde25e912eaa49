/** Whether a session has ended, told by its newest record without folding the others. */
import type { Blobs, Journal } from '@coxswain/ports';
import { hasEnded, type JournalRecord, type SessionRef, topState } from '@coxswain/protocol';
import { copyAfter } from './copy-state.ts';
import { readRecord } from './load-session.ts';

/** Whether the run of a session whose newest record this is has ended, and nothing that followed it goes on. */
export function isAtRest({ state, effects_open }: Pick<JournalRecord, 'state' | 'effects_open'>): boolean {
  return hasEnded(state) && effects_open.length === 0;
}

/**
 * Why a session whose newest record this is has not ended, or null where it has. An import that was broken off has: nobody
 * goes on with it but who imports it again.
 * @throws what the ports throw.
 */
export async function whyNotEnded(
  { journal, blobs }: { readonly journal: Journal; readonly blobs: Pick<Blobs, 'get'> },
  ref: SessionRef,
  record: JournalRecord,
): Promise<string | null> {
  if (isAtRest(record)) return null;
  const first = record.n === 1 ? record : await firstRecord({ journal, blobs }, ref);
  const copy = first && copyAfter(null, first, ref.sessionId);
  if (copy?.how === 'import' && record.n < copy.n) return null;
  if (hasEnded(record.state))
    return `work after the end of the run of ${ref.sessionId} is still in progress; retry the deletion in a moment`;
  return `${ref.sessionId} is ${topState(record.state)}; end its run first: cox cancel ${ref.sessionId}`;
}

/** A session's first record, or null where there is none. */
export async function firstRecord(
  { journal, blobs }: { readonly journal: Journal; readonly blobs: Pick<Blobs, 'get'> },
  ref: SessionRef,
): Promise<JournalRecord | null> {
  const first = await journal.firstAfter(ref, 0);
  return first && readRecord(first.bytes, blobs);
}
