/** Receipts: told only of what is durable, and only to those who asked. */
import type { Publisher } from '@coxswain/ports';
import {
  BOUNDS,
  type CommandInput,
  isDelivery,
  type Receipt,
  type SessionEvent,
  type SessionRef,
} from '@coxswain/protocol';

const INJECTIONS: ReadonlySet<string> = new Set(['steer', 'remind', 'followup']);

/** The receipts of one session. */
export class Receipts {
  readonly #publisher: Publisher;
  readonly #ref: SessionRef;
  /** Where the delivery of what waits is to be told. As many as may wait. */
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
    if (isCommand(input) && input.receipt_to && INJECTIONS.has(input.verb) && !rejection(events))
      this.#keep(input.command_id, input.receipt_to);
    for (const event of events) {
      const fate = fateIn(event);
      if (fate) this.#waiting.delete(fate.of);
    }
  }

  /** Tells what a record that is now durable means to those who asked. */
  committed(input: { readonly type: string }, events: readonly SessionEvent[], n: number, ended: boolean): void {
    if (isCommand(input) && input.receipt_to) {
      const rejected = rejection(events);
      if (rejected) this.#send(input.receipt_to, { ...this.#head(input.command_id), ...rejected, n });
      else {
        const waits = INJECTIONS.has(input.verb);
        this.#send(input.receipt_to, {
          ...this.#head(input.command_id),
          stage: 'accepted',
          n,
          ...(waits && ended ? { pending_for_next_run: true as const } : {}),
        });
        if (waits) this.#keep(input.command_id, input.receipt_to);
      }
    }
    const asked = isCommand(input) ? input.copied_from : undefined;
    if (asked?.receipt_to && asked.command_id !== undefined)
      this.#send(asked.receipt_to, { ...this.#head(asked.command_id), stage: 'accepted', n });
    for (const event of events) {
      const fate = fateIn(event);
      const to = fate && this.#waiting.get(fate.of);
      if (!to) continue;
      this.#waiting.delete(fate.of);
      this.#send(to, { ...this.#head(fate.of), ...fate.told, n });
    }
  }

  /** Tells of a rejection that left no record: an unknown session, a stray subject. */
  rejectedUnrecorded(input: CommandInput, rejected: Extract<SessionEvent, { type: 'command_rejected' }>): void {
    if (input.receipt_to)
      this.#send(input.receipt_to, { ...this.#head(input.command_id), ...rejectionFields(rejected) });
  }

  /** Tells the sender of a repetition what the first one was told. */
  repeated(input: CommandInput, previously: string): void {
    if (!input.receipt_to) return;
    const verdict =
      previously === 'accepted' ? { stage: 'accepted' as const } : { stage: 'rejected' as const, code: previously };
    this.#send(input.receipt_to, { ...this.#head(input.command_id), ...verdict, message: 'repeated: nothing changed' });
  }

  #head(commandId: string) {
    return { type: 'receipt' as const, session_id: this.#ref.sessionId, command_id: commandId };
  }

  #keep(commandId: string, to: string): void {
    if (this.#waiting.size < BOUNDS.pendingInjectionsMax) this.#waiting.set(commandId, to);
  }

  #send(to: string, receipt: Receipt): void {
    this.#publisher.receipt(to, receipt);
  }
}

/** What an event says of an injection that waited: whose end it is, and how it is told. */
function fateIn(event: SessionEvent): { readonly of: string; readonly told: Fate } | null {
  if (isDelivery(event)) {
    const { command_id, seam, turn, replaced_by } = event;
    const detail = replaced_by === undefined ? {} : { detail: { replaced_by } };
    return { of: command_id, told: { stage: 'delivered', seam, turn, ...detail } };
  }
  if (event.type === 'injection_collapsed') {
    const { command_id, into } = event;
    const reason = `collapsed into ${into}, which has the same dedupe key`;
    return { of: command_id, told: { stage: 'revoked', reason, detail: { collapsed_into: into } } };
  }
  if (event.type === 'control_outcome' && event.control === 'revoke' && event.status === 'revoked') {
    const { target, command_id, actor } = event;
    const reason = actor ? `revoked by ${actor.name}` : 'revoked';
    return { of: target, told: { stage: 'revoked', reason, detail: { revoked_by: command_id } } };
  }
  if (event.type === 'injection_blocked')
    return { of: event.command_id, told: { stage: 'blocked', reason: event.reason } };
  return null;
}

type Fate = Pick<Receipt, 'stage' | 'seam' | 'turn' | 'reason' | 'detail'>;

function isCommand(input: { readonly type: string }): input is CommandInput {
  return input.type === 'command';
}

function rejection(events: readonly SessionEvent[]) {
  const rejected = events.find((event) => event.type === 'command_rejected');
  return rejected ? rejectionFields(rejected) : undefined;
}

function rejectionFields({ code, message, field, detail }: Extract<SessionEvent, { type: 'command_rejected' }>) {
  return {
    stage: 'rejected' as const,
    code,
    message,
    ...(field === undefined ? {} : { field }),
    ...(detail ? { detail } : {}),
  };
}
