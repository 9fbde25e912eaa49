/** Receipts: told only of what is durable, and only to those who asked. */
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
  /** Where the delivery of what waits, and the decision on a deferred command, is to be told. As many as may wait. */
  readonly #waiting = new Map<string, string>();

  constructor(publisher: Publisher, ref: SessionRef, waiting: Readonly<Record<string, string>> = {}) {
    this.#publisher = publisher;
    this.#ref = ref;
    for (const [commandId, to] of Object.entries(waiting)) this.#waiting.set(commandId, to);
  }

  /** Who still waits for a delivery, by command id: what a snapshot keeps. */
  get waiting(): Readonly<Record<string, string>> {
    return Object.fromEntries(this.#waiting);
  }

  /** Takes in a record that was committed before this host had the session. Tells nobody. */
  recall(input: { readonly type: string }, events: readonly SessionEvent[]): void {
    if (
      isCommand(input) &&
      input.receipt_to &&
      (isQueuedBy(input, events) || isDeferredBy(events, input.command_id)) &&
      !rejectionIn(events, input.command_id)
    )
      this.#keep(input.command_id, input.receipt_to);
    for (const event of events) {
      const told = injectionFateIn(event) ?? deferredFateIn(event);
      if (told) this.#waiting.delete(told.of);
    }
  }

  /** Tells what a record that is now durable means to those who asked. */
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
    const asked = isCommand(input) ? input.copied_from : undefined;
    if (asked?.receipt_to && asked.command_id !== undefined)
      this.#send(asked.receipt_to, { ...this.#head(asked.command_id), stage: 'accepted', n });
    for (const event of events) {
      if (event.type === 'agent_end') this.#tellKept(n);
      const told = injectionFateIn(event) ?? deferredFateIn(event);
      const to = told && this.#waiting.get(told.of);
      if (!to) continue;
      this.#waiting.delete(told.of);
      this.#send(to, { ...this.#head(told.of), ...rememberedIn(events, told.of), ...told.fate, n });
    }
  }

  /** Reports that the session is deleted, and within what time the retention job purges what is left; null without a job. */
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

  /** Tells of a rejection that left no record: an unknown session, a stray subject. */
  rejectedUnrecorded(input: CommandInput, rejected: Extract<SessionEvent, { type: 'command_rejected' }>): void {
    if (input.receipt_to) this.#send(input.receipt_to, { ...this.#head(input.command_id), ...rejectedFate(rejected) });
  }

  /** Tells the sender of a repetition what the first one was told. */
  repeated(input: CommandInput, previously: string): void {
    if (!input.receipt_to) return;
    const verdict =
      previously === 'accepted' ? { stage: 'accepted' as const } : { stage: 'rejected' as const, code: previously };
    this.#send(input.receipt_to, { ...this.#head(input.command_id), ...verdict, message: 'repeated: nothing changed' });
  }

  /** Answers a start that repeats the session's start: with the receipt of that one. @param first its command id. */
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

  // What came in time and was not delivered is kept: who waits for it must not wait for a run that is over.
  #tellKept(n: number): void {
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

/** An approver is shown what is remembered: it goes further than the one call. */
function rememberedIn(events: readonly SessionEvent[], commandId: string): Pick<Receipt, 'detail'> {
  const event = events.find((one) => one.type === 'permission_remembered' && one.rule.id === commandId);
  return event?.type === 'permission_remembered'
    ? { detail: { remembered: event.rule as unknown as Json, says: describeRule(event.rule) } }
    : {};
}
