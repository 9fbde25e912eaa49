/** Tracks the queued messages and the pending approvals of a session, record by record. */
import { type EventOf, isDelivery, type SessionEvent } from '@coxswain/protocol';
import { printable } from '../browser-client.ts';
import type { OpenApproval, PendingInjection } from './entries.ts';

/** Takes a session's events in order. */
export class PendingQueue {
  #pending: readonly PendingInjection[] = [];
  #approvals: readonly OpenApproval[] = [];

  /** The queued messages, in the order of delivery. */
  get pending(): readonly PendingInjection[] {
    return this.#pending;
  }

  /** The pending approvals, in the order of their requests. */
  get approvals(): readonly OpenApproval[] {
    return this.#approvals;
  }

  /** Takes an event. @param at The time of its record, ISO 8601. */
  add(event: SessionEvent, at: string): void {
    switch (event.type) {
      case 'steering_received':
        this.#wait({ ...saidBy(event), kind: 'steer', mode: event.mode });
        return;
      case 'reminder_injected':
        if (event.direct) return;
        this.#wait({ ...saidBy(event), kind: 'remind', mode: event.mode });
        return;
      case 'followup_received':
        this.#wait({ ...saidBy(event), kind: 'followup', mode: null });
        return;
      case 'injection_collapsed':
        this.#collapse(event);
        return;
      case 'injection_blocked':
      case 'reminder_expired':
      case 'reminder_deduped':
        this.#leave(event.command_id);
        return;
      case 'message_injected':
      case 'reminder_fired':
        if (isDelivery(event)) this.#leave(event.command_id);
        return;
      case 'control_outcome':
        this.#control(event);
        return;
      case 'approval_requested': {
        const { call_id, tool, args, requested_by } = event;
        const question = event.question === undefined ? null : printable(event.question);
        this.#approvals = [
          ...this.#approvals.filter(({ callId }) => callId !== call_id),
          { callId: call_id, tool, args, requestedBy: requested_by, question, at },
        ];
        return;
      }
      case 'approval_decided':
      case 'call_ended':
        this.#approvals = this.#approvals.filter(({ callId }) => callId !== event.call_id);
        return;
      default:
        return;
    }
  }

  #wait(one: PendingInjection): void {
    this.#pending = [...this.#pending, one];
  }

  #leave(commandId: string): void {
    this.#pending = this.#pending.filter((one) => one.commandId !== commandId);
  }

  // The newest message takes the place of the oldest.
  #collapse({ command_id, into }: EventOf<'injection_collapsed'>): void {
    const newest = this.#pending.find(({ commandId }) => commandId === into);
    if (!newest) {
      this.#leave(command_id);
      return;
    }
    this.#pending = this.#pending
      .filter(({ commandId }) => commandId !== into)
      .map((one) => (one.commandId === command_id ? newest : one));
  }

  #control({ control, status, target, body }: EventOf<'control_outcome'>): void {
    if (control === 'revoke' && status === 'revoked') this.#leave(target);
    if (control === 'replace' && status === 'replaced' && body !== undefined)
      this.#pending = this.#pending.map((one) => (one.commandId === target ? { ...one, text: printable(body) } : one));
  }
}

function saidBy({
  command_id,
  body,
  actor,
  at,
}: EventOf<'steering_received' | 'reminder_injected' | 'followup_received'>) {
  return {
    commandId: command_id,
    text: printable(body),
    actor: actor === undefined ? null : printable(actor.name),
    at,
  };
}
