/** Follows the journal for the fate of a command. */
import type { CommandId, Receipt, SessionRef } from '@coxswain/protocol';
import { CommandFate } from './command-fate.ts';
import { followJournal, type JournalBus, lastNumber } from './read-journal.ts';

/** The command, the stage to wait for, and how. */
export interface AwaitedFate {
  readonly commandId: CommandId;
  readonly awaited: 'accepted' | 'delivered';
  /** The first record that can contain the command. */
  readonly from: number;
  readonly onAccepted: () => void;
  readonly signal: AbortSignal;
}

/**
 * Follows the journal until the command reaches the awaited stage. It also ends when the run is over and the command
 * stays queued: the receipt then says `pending_for_next_run`.
 * @returns null if the signal aborted.
 */
export async function awaitFate(bus: JournalBus, ref: SessionRef, asked: AwaitedFate): Promise<Receipt | null> {
  // An earlier end of a run does not count: a later run may have delivered the command.
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
