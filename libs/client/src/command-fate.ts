/**
 * What became of a command, read from the journal: for whoever gets no receipt, because the bus had the command already
 * or because the run ended before it was delivered.
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

/** Takes a session's records in order and tells how far one of its commands has come. */
export class CommandFate {
  readonly #commandId: CommandId;
  #receipt: Receipt | null = null;
  #waits = false;

  constructor(commandId: CommandId) {
    this.#commandId = commandId;
  }

  /** @returns the receipt as it stands after this record; null where the command has not come yet. */
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

  // Parsed: its members come in the order that receipts from the bus have, so programs print the same of both.
  #receiptOf({ session_id, n }: JournalRecord, fate: Pick<Receipt, 'stage'> & Partial<Receipt>): Receipt {
    return Receipt.parse({ type: 'receipt', session_id, command_id: this.#commandId, n, ...fate });
  }
}

/** A fork's own command stands in the copy of its origin's first record. */
function isOf(input: CommandInput, commandId: CommandId): boolean {
  return input.command_id === commandId || input.copied_from?.command_id === commandId;
}
