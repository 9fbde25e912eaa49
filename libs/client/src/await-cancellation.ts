/** Waits in the journal for the outcome of a `cancel_call`. */
import { type CallCancellation, cancellationIn, type JournalRecord, type SessionRef } from '@coxswain/protocol';
import { ReceiptTimeoutError } from './client-errors.ts';
import type { WireSentCommand } from './outgoing-command.ts';

/** Records of the session from a number on, and then live, until the signal aborts. */
type FollowRecords = (from: number, signal: AbortSignal) => AsyncIterable<{ readonly record: JournalRecord }>;

/** How long an outcome is waited for. */
export interface CancellationWait {
  /** When the wait ends, on the clock of `performance`. */
  readonly untilMs: number;
  /** How long the whole wait is, for the error. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

/**
 * Follows the journal from the record of the command on until its outcome is recorded. The journal is the authority: a host that
 * stops meanwhile does not lose the answer, as the next host records it.
 * @param sent the accepted command, with its receipt.
 * @throws ReceiptTimeoutError after `untilMs`; the signal's reason; what reading the journal throws, such as SessionDeletedError.
 */
export async function awaitCancellation(
  follow: FollowRecords,
  ref: SessionRef,
  sent: WireSentCommand,
  { untilMs, timeoutMs, signal }: CancellationWait,
): Promise<CallCancellation> {
  const leaving = new AbortController();
  const leave = () => leaving.abort('the wait is over');
  const timer = setTimeout(leave, Math.max(0, untilMs - performance.now()));
  if (signal?.aborted) leave();
  signal?.addEventListener('abort', leave, { once: true });
  try {
    // A repeated receipt may not name the record.
    for await (const { record } of follow(sent.receipt?.n ?? 1, leaving.signal)) {
      const found = cancellationIn(record, sent.commandId);
      if (found) return found;
    }
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', leave);
  }
  signal?.throwIfAborted();
  const { commandId } = sent;
  throw new ReceiptTimeoutError({ commandId, sessionId: ref.sessionId, awaited: 'outcome', waitedMs: timeoutMs, sent });
}
