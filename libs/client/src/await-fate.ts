/** Waits in the journal for what becomes of a command. */
import type { CommandId, Receipt, SessionRef } from '@coxswain/protocol';
import { CommandFate } from './command-fate.ts';
import { followJournal, type JournalBus, lastNumber } from './read-journal.ts';

/** What is waited for, and how. */
export interface AwaitedFate {
  readonly commandId: CommandId;
  readonly awaited: 'accepted' | 'delivered';
  /** The first record that can hold the command. */
  readonly from: number;
  readonly onAccepted: () => void;
  readonly signal: AbortSignal;
}

/**
 * Follows the journal until the command has come as far as is asked, or can come no further in the run that is or was:
 * then the receipt says `pending_for_next_run`. Null where the signal has ended it.
 */
export async function awaitFate(bus: JournalBus, ref: SessionRef, asked: AwaitedFate): Promise<Receipt | null> {
  // Ends of runs before the newest record are history: a later run may have delivered it.
  const present = await lastNumber(bus, ref);
  const fate = new CommandFate(asked.commandId);
  for await (const { record } of followJournal(bus, ref, asked.from, asked.signal)) {
    const receipt = fate.add(record);
    if (receipt === null) continue;
    asked.onAccepted();
    if (receipt.stage !== 'accepted' || asked.awaited === 'accepted') return receipt;
    if (receipt.pending_for_next_run && record.n >= present) return receipt;
  }
  return null;
}
