/** Waits in the journal for the outcome of a `cancel_call`. */
import { type CallCancellation, cancellationIn, type JournalRecord, type SessionRef } from '@coxswain/protocol';
import { ReceiptTimeoutError } from './client-errors.ts';
import type { WireSentCommand } from './outgoing-command.ts';

/** Yields records of the session from a number on, stored and live, until the signal aborts. */
type FollowRecords = (from: number, signal: AbortSignal) => AsyncIterable<{ readonly record: JournalRecord }>;

/** The limits of the wait. */
export interface CancellationWait {
  /** The deadline, on the clock of `performance.now()`. */
  readonly untilMs: number;
  /** The length of the whole wait, for the error message. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

/**
 * Follows the journal from the record of the command until the outcome is recorded. The journal is authoritative: if
 * the host stops, the next host records the outcome.
 * @param sent The accepted command, with its receipt.
 * @throws ReceiptTimeoutError after `untilMs`; the signal's reason; errors of reading the journal, such as
 *   SessionDeletedError.
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
    // The receipt of a repeated command may not name the record.
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
