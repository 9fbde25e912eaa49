/** Follows the journal for the receipt of a command. */
import type { CommandId, Receipt, SessionRef } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { JournalReceipt } from './journal-receipt.ts';
import { followJournal, type JournalPlace, lastNumber } from './read-journal.ts';

/** The command, the stage to wait for, and how. */
export interface ReceiptQuery {
  readonly commandId: CommandId;
  readonly awaited: 'accepted' | 'delivered';
  /** A record before the command's; null if the command may be anywhere in the journal. */
  readonly after: JournalPlace | null;
  readonly onAccepted: () => void;
  readonly signal: AbortSignal;
}

/**
 * Follows the journal until the command reaches the awaited stage. It also ends when the run is over and the command
 * stays queued: the receipt then says `pending_for_next_run`.
 * @returns null if the signal aborted.
 */
export async function awaitReceiptInJournal(
  nc: NatsConnection,
  ref: SessionRef,
  query: ReceiptQuery,
): Promise<Receipt | null> {
  // An earlier end of a run does not count: a later run may have delivered the command.
  const present = await lastNumber(nc, ref);
  const journalReceipt = new JournalReceipt(query.commandId);
  for await (const { record } of followJournal(nc, ref, 1, query.signal, query.after)) {
    const receipt = journalReceipt.add(record);
    if (receipt === null) continue;
    query.onAccepted();
    if (receipt.stage !== 'accepted' || query.awaited === 'accepted') return receipt;
    if (receipt.pending_for_next_run && record.n >= present) return receipt;
  }
  return null;
}
