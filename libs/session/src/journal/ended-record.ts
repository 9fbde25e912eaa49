/** Whether a session has ended, from its newest record. The first record shows whether it is an unfinished import. */
import type { Blobs, Journal } from '@coxswain/ports';
import { hasEnded, type JournalRecord, type SessionRef, topState } from '@coxswain/protocol';
import { unfinishedCopyAfter } from './copy-state.ts';
import { readRecord } from './load-session.ts';

/** Whether the newest record of a session shows an ended run without open effects. */
export function isAtRest({ state, effects_open }: Pick<JournalRecord, 'state' | 'effects_open'>): boolean {
  return hasEnded(state) && effects_open.length === 0;
}

/**
 * The reason why a session has not ended, or null where it has. An unfinished import counts as ended: only another
 * import can continue it.
 * @param record the session's newest record.
 * @throws RecordUnreadableError of the first record, and errors of the ports.
 */
export async function whyNotEnded(
  { journal, blobs }: { readonly journal: Journal; readonly blobs: Pick<Blobs, 'get'> },
  ref: SessionRef,
  record: JournalRecord,
): Promise<string | null> {
  if (isAtRest(record)) return null;
  const first = record.n === 1 ? record : await firstRecord({ journal, blobs }, ref);
  const copy = first && unfinishedCopyAfter(null, first, ref.sessionId);
  if (copy?.how === 'import' && record.n < copy.n) return null;
  if (hasEnded(record.state))
    return `work after the end of the run of ${ref.sessionId} is still in progress; retry the deletion in a moment`;
  return `${ref.sessionId} is ${topState(record.state)}; end its run first: cox cancel ${ref.sessionId}`;
}

/**
 * A session's first record, or null where there is none.
 * @throws RecordUnreadableError, and errors of the ports.
 */
export async function firstRecord(
  { journal, blobs }: { readonly journal: Journal; readonly blobs: Pick<Blobs, 'get'> },
  ref: SessionRef,
): Promise<JournalRecord | null> {
  const first = await journal.firstAfter(ref, 0);
  return first && readRecord(first.bytes, blobs);
}
