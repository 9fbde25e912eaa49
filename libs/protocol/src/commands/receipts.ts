/** Receipts: what becomes of a command, told to the inbox that its sender named. */
import * as z from 'zod';
import { type EventOf, isDelivery, type SessionEvent } from '../journal/events.ts';
import type { CommandInput } from '../journal/inputs.ts';
import { withNames } from '../wire/casing.ts';
import { JsonObject } from '../wire/json.ts';
import { RememberedRule } from './remembered-rules.ts';

/** The names in the detail of a receipt or of a rejection. Members that are not listed here are renamed too, and their values kept. */
export const DetailNames = z.looseObject({
  purge: z.object({ records_within_ms: z.number(), files_within_ms: z.number() }).nullable(),
  remembered: RememberedRule,
});

/** One receipt. A receipt is sent only after the record that it speaks of is durable. */
export const Receipt = z.strictObject({
  type: z.literal('receipt'),
  session_id: z.string(),
  command_id: z.string(),
  stage: z.enum(['accepted', 'rejected', 'delivered', 'blocked', 'revoked']),
  /** The record that holds it; absent where nothing was recorded (an unknown session). */
  n: z.number().int().positive().optional(),
  code: z.string().optional(),
  message: z.string().optional(),
  field: z.string().optional(),
  detail: withNames(JsonObject.optional(), () => DetailNames),
  seam: z.string().optional(),
  turn: z.number().int().nonnegative().optional(),
  reason: z.string().optional(),
  /** Of a start that repeats the session's start under its message id: `detail.command_id` is the command that started the session. */
  duplicate: z.literal(true).optional(),
  /** It waits for the next run: the session has ended, or its run has just now. */
  pending_for_next_run: z.literal(true).optional(),
  /** Of a prompt with `if_running`: whether it began a run, or was queued as a steer. */
  became: z.enum(['prompt', 'steer']).optional(),
});
/** See {@link Receipt}. */
export type Receipt = z.infer<typeof Receipt>;

const INJECTIONS: ReadonlySet<string> = new Set(['steer', 'remind', 'followup']);

/** What a prompt with `if_running` became, by the record that accepted it; empty for any other command. */
export function becameIn(
  { command_id, body }: Pick<CommandInput, 'command_id' | 'body'>,
  events: readonly SessionEvent[],
): Pick<Receipt, 'became'> {
  if (body.if_running === undefined) return {};
  const isSteer = events.some((event) => event.type === 'steering_received' && event.command_id === command_id);
  return { became: isSteer ? 'steer' : 'prompt' };
}

/** Whether a command that a record accepted is queued as an injection: its delivery is reported later. */
export function isQueuedBy(
  input: Pick<CommandInput, 'command_id' | 'body' | 'verb'>,
  events: readonly SessionEvent[],
): boolean {
  return INJECTIONS.has(input.verb) || becameIn(input, events).became === 'steer';
}

/** How the waiting of an injection ends, in the words of its receipt. */
export type InjectionFate = Pick<Receipt, 'stage' | 'seam' | 'turn' | 'reason' | 'detail'>;

/**
 * Whether a record defers the decision on a command to a later one: the report of a job that no hook has started so far, or
 * an `approve` whose edited call hooks are asked about. Its receipt follows from the later record.
 */
export function isDeferredBy(events: readonly SessionEvent[], commandId: string): boolean {
  return events.some(
    (event) =>
      (event.type === 'job_report_deferred' || event.type === 'edited_call_proposed') && event.command_id === commandId,
  );
}

/** Which deferred command an event decides, and how; null for an event that decides none. */
export function deferredFateIn(event: SessionEvent): { readonly of: string; readonly fate: DeferredFate } | null {
  if (event.type === 'job_reported') return { of: event.command_id, fate: { stage: 'accepted' } };
  if (event.type === 'approval_decided' && event.command_id !== undefined)
    return { of: event.command_id, fate: { stage: 'accepted' } };
  if (event.type !== 'command_rejected' || !DEFERRABLE.has(event.verb)) return null;
  return { of: event.command_id, fate: rejectedFate(event) };
}

const DEFERRABLE: ReadonlySet<string> = new Set(['feedback', 'approve']);

/** How a deferred command is decided, in the words of its receipt. */
export type DeferredFate = Pick<Receipt, 'stage' | 'code' | 'message' | 'field' | 'detail'>;

/** How a record rejects a command, in the words of its receipt; null where it does not. A record may reject others too. */
export function rejectionIn(events: readonly SessionEvent[], commandId: string): DeferredFate | null {
  for (const event of events)
    if (event.type === 'command_rejected' && event.command_id === commandId) return rejectedFate(event);
  return null;
}

/** A rejection in the words of a receipt. */
export function rejectedFate({ code, message, field, detail }: EventOf<'command_rejected'>): DeferredFate {
  return {
    stage: 'rejected',
    code,
    message,
    ...(field === undefined ? {} : { field }),
    ...(detail === undefined ? {} : { detail }),
  };
}

/** Whose waiting an event ends, and how; null for an event that ends none. */
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
