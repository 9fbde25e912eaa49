/**
 * Receipts: reports on the progress of a command, sent to the inbox that its sender chose.
 */
import * as z from 'zod';
import { INJECTION_VERBS } from '../catalogues/seams.ts';
import { type EventOf, isDelivery, type SessionEvent } from '../journal/events.ts';
import type { CommandInput } from '../journal/inputs.ts';
import { withNames } from '../wire/casing.ts';
import { WrapperObject } from '../wire/json.ts';
import { RememberedRule } from './remembered-rules.ts';

/**
 * The names in the detail of a receipt or of a rejection, for the mapper of names (casing.ts). It renames further
 * members too, and keeps their values.
 */
export const DetailNames = z.looseObject({
  purge: z.object({ records_within_ms: z.number(), files_within_ms: z.number() }).nullable(),
  remembered: RememberedRule,
});

/** One receipt. If the command gets a record, the receipt is sent only after the record is durable. */
export const Receipt = z.strictObject({
  type: z.literal('receipt'),
  session_id: z.string(),
  command_id: z.string(),
  stage: z.enum(['accepted', 'rejected', 'delivered', 'blocked', 'revoked']),
  /**
   * The number of the record. Absent if nothing was recorded: an unknown or deleted session, a damaged journal, a
   * used-up quota or share of rejections, or a repeated command. With `duplicate`: the record of the first start.
   */
  n: z.number().int().positive().optional(),
  code: z.string().optional(),
  message: z.string().optional(),
  field: z.string().optional(),
  detail: withNames(WrapperObject.optional(), () => DetailNames),
  seam: z.string().optional(),
  turn: z.number().int().nonnegative().optional(),
  reason: z.string().optional(),
  /**
   * For a start that repeats an earlier start with the same message id: `detail.command_id` is the command that started
   * the session.
   */
  duplicate: z.literal(true).optional(),
  /** The message is queued for the next run: the session has ended, or its run ends in record `n`. */
  pending_for_next_run: z.literal(true).optional(),
  /**
   * For a prompt with `if_running`. `steer`: it was queued as a steer. `prompt`: it started a run; or, because the run has
   * no seam left for a steer, it was queued as a follow-up that starts the next run (`decidePromptOrSteer` in libs/turn).
   */
  became: z.enum(['prompt', 'steer']).optional(),
});
export type Receipt = z.infer<typeof Receipt>;

const INJECTIONS: ReadonlySet<string> = new Set(INJECTION_VERBS);

/**
 * The member `became` of the receipt for a prompt with `if_running`; empty for any other command.
 * @param events of the record that accepted the command.
 */
export function becameIn(
  { command_id, body }: Pick<CommandInput, 'command_id' | 'body'>,
  events: readonly SessionEvent[],
): Pick<Receipt, 'became'> {
  if (body.if_running === undefined) return {};
  const isSteer = events.some((event) => event.type === 'steering_received' && event.command_id === command_id);
  return { became: isSteer ? 'steer' : 'prompt' };
}

/**
 * Whether a record queues a command as an injection, whose delivery is reported later. By the verb and the events only: the
 * caller must know that the record does not reject the command ({@link rejectionIn}).
 */
export function isQueuedBy(
  input: Pick<CommandInput, 'command_id' | 'body' | 'verb'>,
  events: readonly SessionEvent[],
): boolean {
  return INJECTIONS.has(input.verb) || becameIn(input, events).became === 'steer';
}

/** The end of an injection's time in the queue, as members of a receipt. */
export type InjectionFate = Pick<Receipt, 'stage' | 'seam' | 'turn' | 'reason' | 'detail'>;

/**
 * Whether a record defers the decision on a command to a later record. This applies to a report of a job that the
 * session does not know yet (`decideFeedbackCommand` in libs/turn), and to an `approve` with an edited call that hooks
 * check. The later record causes the receipt.
 */
export function isDeferredBy(events: readonly SessionEvent[], commandId: string): boolean {
  return events.some(
    (event) =>
      (event.type === 'job_report_deferred' || event.type === 'edited_call_proposed') && event.command_id === commandId,
  );
}

/**
 * The decision in an event on a command that may have been deferred, and the id of this command. Null for any other event,
 * and for the rejection of a verb that is never deferred. The event does not show whether the command was deferred: the
 * caller looks the id up among those of {@link isDeferredBy}.
 */
export function deferredFateIn(event: SessionEvent): { readonly of: string; readonly fate: DeferredFate } | null {
  if (event.type === 'job_reported') return { of: event.command_id, fate: { stage: 'accepted' } };
  if (event.type === 'approval_decided' && event.command_id !== undefined)
    return { of: event.command_id, fate: { stage: 'accepted' } };
  if (event.type !== 'command_rejected' || !DEFERRABLE.has(event.verb)) return null;
  return { of: event.command_id, fate: rejectedFate(event) };
}

const DEFERRABLE: ReadonlySet<string> = new Set(['feedback', 'approve']);

/** The decision on a command, accepted or rejected, as members of a receipt. */
export type DeferredFate = Pick<Receipt, 'stage' | 'code' | 'message' | 'field' | 'detail'>;

/**
 * The rejection of a command in a record, as members of a receipt; null if the record does not reject it. A record may
 * reject several commands.
 */
export function rejectionIn(events: readonly SessionEvent[], commandId: string): DeferredFate | null {
  for (const event of events)
    if (event.type === 'command_rejected' && event.command_id === commandId) return rejectedFate(event);
  return null;
}

/** A rejection as members of a receipt. */
export function rejectedFate({ code, message, field, detail }: EventOf<'command_rejected'>): DeferredFate {
  return {
    stage: 'rejected',
    code,
    message,
    ...(field === undefined ? {} : { field }),
    ...(detail === undefined ? {} : { detail }),
  };
}

/** The injection that an event removes from the queue, and how it ends; null for other events. */
export function injectionFateIn(event: SessionEvent): { readonly of: string; readonly fate: InjectionFate } | null {
  if (isDelivery(event)) {
    const { command_id, seam, turn, replaced_by } = event;
    const detail = replaced_by === undefined ? {} : { detail: { replaced_by } };
    return { of: command_id, fate: { stage: 'delivered', seam, turn, ...detail } };
  }
  if (event.type === 'injection_collapsed') {
    const { command_id, into } = event;
    const reason = `collapsed into ${into}, which has the same dedupe key`;
    return { of: command_id, fate: { stage: 'revoked', reason, detail: { collapsed_into: into } } };
  }
  if (event.type === 'control_outcome' && event.control === 'revoke' && event.status === 'revoked') {
    const { target, command_id, actor } = event;
    const reason = actor ? `revoked by ${actor.name}` : 'revoked';
    return { of: target, fate: { stage: 'revoked', reason, detail: { revoked_by: command_id } } };
  }
  if (event.type === 'injection_blocked')
    return { of: event.command_id, fate: { stage: 'blocked', reason: event.reason } };
  return null;
}
