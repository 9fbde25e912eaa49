/**
 * Receipts of commands, only for senders that asked for one. The receipt of a record is sent after the record is durable.
 * `deleted` reports a tombstone. A command without a record gets its receipt by `rejectedUnrecorded`, `repeated` or
 * `repeatedStart`. The receipt of a command whose subject names no session: `createUnroutableHandler`
 * (hosting/reject-unroutable.ts).
 */
import type { Publisher, PurgesWithin } from '@coxswain/ports';
import {
  BOUNDS,
  becameIn,
  type CommandInput,
  deferredFateIn,
  describeRule,
  injectionFateIn,
  isDeferredBy,
  isQueuedBy,
  type Json,
  type Receipt,
  rejectedFate,
  rejectionIn,
  type SessionEvent,
  type SessionRef,
} from '@coxswain/protocol';

/** The receipts of one session. */
export class Receipts {
  readonly #publisher: Publisher;
  readonly #ref: SessionRef;
  /**
   * Receipt subjects by command id, of queued messages (`isQueuedBy`) and of deferred commands (`isDeferredBy`). At most as
   * many as messages may be queued: senders beyond that get no later receipt.
   */
  readonly #waiting = new Map<string, string>();

  constructor(publisher: Publisher, ref: SessionRef, waiting: Readonly<Record<string, string>> = {}) {
    this.#publisher = publisher;
    this.#ref = ref;
    for (const [commandId, to] of Object.entries(waiting)) this.#waiting.set(commandId, to);
  }

  /** Receipt subjects of queued messages and deferred commands, by command id. A snapshot holds them. */
  get waiting(): Readonly<Record<string, string>> {
    return Object.fromEntries(this.#waiting);
  }

  /**
   * Reads a record of the journal while the session is being loaded: which receipts are still to be sent. Sends
   * nothing.
   */
  recall(input: { readonly type: string }, events: readonly SessionEvent[]): void {
    if (
      isCommand(input) &&
      input.receipt_to &&
      (isQueuedBy(input, events) || isDeferredBy(events, input.command_id)) &&
      !rejectionIn(events, input.command_id)
    )
      this.#keep(input.command_id, input.receipt_to);
    for (const event of events) {
      const decided = injectionFateIn(event) ?? deferredFateIn(event);
      if (decided) this.#waiting.delete(decided.of);
    }
  }

  /**
   * Sends the receipts of a record that is now durable.
   * @param ended no run is active after the record: a queued message waits for the next run.
   */
  committed(input: { readonly type: string }, events: readonly SessionEvent[], n: number, ended: boolean): void {
    if (isCommand(input) && input.receipt_to) {
      const rejected = rejectionIn(events, input.command_id);
      if (rejected) this.#send(input.receipt_to, { ...this.#head(input.command_id), ...rejected, n });
      else if (isDeferredBy(events, input.command_id)) this.#keep(input.command_id, input.receipt_to);
      else {
        const waits = isQueuedBy(input, events);
        this.#send(input.receipt_to, {
          ...this.#head(input.command_id),
          stage: 'accepted',
          n,
          ...becameIn(input, events),
          ...rememberedIn(events, input.command_id),
          ...(waits && ended ? { pending_for_next_run: true as const } : {}),
        });
        if (waits) this.#keep(input.command_id, input.receipt_to);
      }
    }
    // The first record of a fork contains the start of its origin, and also answers the command that requested the fork.
    const fork = isCommand(input) ? input.copied_from : undefined;
    if (fork?.receipt_to && fork.command_id !== undefined)
      this.#send(fork.receipt_to, { ...this.#head(fork.command_id), stage: 'accepted', n });
    for (const event of events) {
      if (event.type === 'agent_end') this.#sendKept(n);
      const decided = injectionFateIn(event) ?? deferredFateIn(event);
      const to = decided && this.#waiting.get(decided.of);
      if (!to) continue;
      this.#waiting.delete(decided.of);
      this.#send(to, { ...this.#head(decided.of), ...rememberedIn(events, decided.of), ...decided.fate, n });
    }
  }

  /**
   * Reports that the session is deleted.
   * @param within the times within which the retention job purges what is left; null without a job.
   */
  deleted(input: CommandInput, n: number, within: PurgesWithin | null): void {
    if (!input.receipt_to) return;
    const purge = within && { records_within_ms: within.recordsMs, files_within_ms: within.filesMs };
    const message = within
      ? `records are purged within ${within.recordsMs / 1_000} s, files within ${within.filesMs / 3_600_000} h`
      : 'no retention job is alive: records stay in the store until cox serve retention or cox admin retention runs';
    this.#send(input.receipt_to, {
      ...this.#head(input.command_id),
      stage: 'accepted',
      n,
      message,
      detail: { purge },
    });
  }

  /** Sends a rejection that left no record, for example of a command to an unknown session. */
  rejectedUnrecorded(input: CommandInput, rejected: Extract<SessionEvent, { type: 'command_rejected' }>): void {
    if (input.receipt_to) this.#send(input.receipt_to, { ...this.#head(input.command_id), ...rejectedFate(rejected) });
  }

  /**
   * Answers a repetition with the stage of the first command's receipt.
   * @param previously `accepted`, or the code of the rejection.
   */
  repeated(input: CommandInput, previously: string): void {
    if (!input.receipt_to) return;
    const verdict =
      previously === 'accepted' ? { stage: 'accepted' as const } : { stage: 'rejected' as const, code: previously };
    this.#send(input.receipt_to, { ...this.#head(input.command_id), ...verdict, message: 'repeated: nothing changed' });
  }

  /** Answers a repetition of the session's start as accepted. @param first the command id of the session's start. */
  repeatedStart(input: CommandInput, first: string): void {
    if (!input.receipt_to) return;
    this.#send(input.receipt_to, {
      ...this.#head(input.command_id),
      stage: 'accepted',
      n: 1,
      message: 'repeated: nothing changed',
      duplicate: true,
      detail: { command_id: first },
    });
  }

  #head(commandId: string) {
    return { type: 'receipt' as const, session_id: this.#ref.sessionId, command_id: commandId };
  }

  // The run is over: a receipt tells the senders of queued messages that these wait for the next run. No deferred command is
  // left: hooks that must answer first have answered before a run ends.
  #sendKept(n: number): void {
    for (const [commandId, to] of this.#waiting)
      this.#send(to, { ...this.#head(commandId), stage: 'accepted', n, pending_for_next_run: true });
  }

  #keep(commandId: string, to: string): void {
    if (this.#waiting.size < BOUNDS.pendingInjectionsMax) this.#waiting.set(commandId, to);
  }

  #send(to: string, receipt: Receipt): void {
    this.#publisher.receipt(to, receipt);
  }
}

function isCommand(input: { readonly type: string }): input is CommandInput {
  return input.type === 'command';
}

/** The permission rule that an approval has remembered, for the receipt of the approval: the rule applies beyond this call. */
function rememberedIn(events: readonly SessionEvent[], commandId: string): Pick<Receipt, 'detail'> {
  const event = events.find((one) => one.type === 'permission_remembered' && one.rule.id === commandId);
  return event?.type === 'permission_remembered'
    ? { detail: { remembered: event.rule as unknown as Json, says: describeRule(event.rule) } }
    : {};
}
