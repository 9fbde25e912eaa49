/**
 * The receipt of a command, derived from the journal. It replaces a missing receipt: the bus had the command already, or the
 * run ended before the command was delivered.
 */
import {
  becameIn,
  type CommandId,
  type CommandInput,
  deferredFateIn,
  hasEnded,
  injectionFateIn,
  isDeferredBy,
  isQueuedBy,
  type JournalRecord,
  Receipt,
  rejectionIn,
} from '@coxswain/protocol';

/** Takes a session's records in order and tracks the stage of one command. */
export class JournalReceipt {
  readonly #commandId: CommandId;
  #receipt: Receipt | null = null;
  #waits = false;

  constructor(commandId: CommandId) {
    this.#commandId = commandId;
  }

  /** @returns the receipt after this record; null if no record contains the command yet. */
  add(record: JournalRecord): Receipt | null {
    const { input } = record;
    const isHere = this.#receipt === null && input.type === 'command' && isOf(input, this.#commandId);
    // A deferred command is decided by a later record.
    if (isHere && !isDeferredBy(record.events, input.command_id)) {
      const rejected = rejectionIn(record.events, input.command_id);
      this.#waits = rejected === null && isQueuedBy(input, record.events);
      this.#receipt = this.#receiptOf(record, rejected ?? { stage: 'accepted', ...becameIn(input, record.events) });
    }
    for (const event of record.events) {
      const settled = this.#waits ? injectionFateIn(event) : this.#receipt === null ? deferredFateIn(event) : null;
      if (settled?.of !== this.#commandId) continue;
      this.#waits = false;
      this.#receipt = this.#receiptOf(record, settled.fate);
    }
    if (this.#waits && this.#receipt) {
      const { pending_for_next_run: _before, ...receipt } = this.#receipt;
      this.#receipt = hasEnded(record.state) ? { ...receipt, pending_for_next_run: true } : receipt;
    }
    return this.#receipt;
  }

  // Parsing gives the members the same order as in receipts from the bus.
  #receiptOf({ session_id, n }: JournalRecord, fate: Pick<Receipt, 'stage'> & Partial<Receipt>): Receipt {
    return Receipt.parse({ type: 'receipt', session_id, command_id: this.#commandId, n, ...fate });
  }
}

/** The command of a fork is recorded in the copy of its origin's first record. */
function isOf(input: CommandInput, commandId: CommandId): boolean {
  return input.command_id === commandId || input.copied_from?.command_id === commandId;
}
