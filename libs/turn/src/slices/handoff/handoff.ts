/**
 * Hand-offs: when one may start, its effect on the run, and the first message to the next persona. The host resolves that
 * persona: `provisionHandoff` (provision-handoff.ts in libs/session). A hand-off removes no messages: the next persona
 * continues the transcript of the session (`Transcript`, transcript.ts in libs/session).
 *
 * HANDOFF-1  A hand-off is the last call of its batch: it starts when all others have results. Settings and tools change
 *     in the record of its successful outcome, before PostToolUse hooks check this outcome. Until the end of the turn,
 *     the payloads of hooks name the persona that handed off (`personaOfTurn`, hooks/consult.ts).
 * HANDOFF-2  The first hand-off of a batch wins, unless it has ended without success.
 * HANDOFF-3  Limits of the start continue to count over all personas; limits of a persona count from its own hand-off.
 */

import {
  BOUNDS,
  type CallOutcome,
  type EventOf,
  type HandoffArgs,
  type JsonObject,
  nearestWord,
  type ProvisionOutcome,
  type SessionEvent,
  userText,
} from '@coxswain/protocol';
import type { SessionContext } from '../../core/context.ts';
import { type Decision, events } from '../../core/decision.ts';
import { decideCall } from '../calls/outcome.ts';
import type { CallRow } from '../calls/state.ts';
import { sessionToolOf } from '../calls/table.ts';
import { unfinishedStepEnd } from '../steps/steps.ts';
import type { Relay } from './state.ts';

/** The member `seam` of a briefing in the journal. No seam delivers it: it follows the results of the batch. */
export const HANDOFF_SEAM = 'handoff';

/** Whether a call is a hand-off. */
function isHandoff(context: SessionContext, row: CallRow): boolean {
  return sessionToolOf(context, row) === 'handoff';
}

/** The target and the briefing of a hand-off; an empty text for each that is invalid. */
export function handoffArgs({ args }: Pick<CallRow, 'args'>): HandoffArgs {
  const { to, brief } = (args ?? {}) as JsonObject;
  return { to: typeof to === 'string' ? to : '', brief: typeof brief === 'string' ? brief : '' };
}

/**
 * Whether a call is the first hand-off of its batch, and must wait for results of other calls (HANDOFF-1). The call `except`
 * counts as ended.
 */
export function waitsForBatch(context: SessionContext, row: CallRow, except?: string): boolean {
  if (!isHandoff(context, row) || precedingHandoff(context, row) !== undefined) return false;
  return context.calls.some((other) => other !== row && other.status !== 'ended' && other.call_id !== except);
}

/** The hand-off of the batch that wins (HANDOFF-2); undefined if it is this call, or if there is none. */
function precedingHandoff(context: SessionContext, row: CallRow): CallRow | undefined {
  const first = context.calls.find(
    (other) => isHandoff(context, other) && (other.status !== 'ended' || other.ended === 'ok'),
  );
  return first === row ? undefined : first;
}

/** Why a hand-off cannot start although its call is allowed, as code and text for the model; or null. */
export function handoffRefusal(
  context: SessionContext,
  row: CallRow,
): { readonly code: string; readonly text: string } | null {
  const { to } = handoffArgs(row);
  const first = precedingHandoff(context, row);
  if (first) {
    const text = `This hand-off was ignored: call ${first.call_id} of the same response already hands off.`;
    return { code: 'second_handoff', text };
  }
  const listed = context.pinned?.handoffs ?? [];
  if (!listed.includes(to) || to === context.pinned?.persona) {
    const meant = nearestWord(to, listed);
    const hint = meant === null ? '' : ` Did you mean ${meant}?`;
    const text = `You cannot hand off to ${to}. You can hand off to: ${listed.join(', ') || 'no persona'}.${hint} The session stays with you.`;
    return { code: 'handoff_not_listed', text };
  }
  if (context.relay.count >= BOUNDS.handoffsMax) {
    const text = `The limit of ${BOUNDS.handoffsMax} consecutive hand-offs is reached. The session stays with you: continue the work yourself.`;
    return { code: 'too_many_handoffs', text };
  }
  return null;
}

/** The event `handoff_emitted`, which precedes the start of a hand-off; null if it is recorded, and for other calls. */
export function nextHandoffEvent(context: SessionContext, row: CallRow): SessionEvent | null {
  if (!isHandoff(context, row) || row.handoff !== undefined) return null;
  const { to, brief } = handoffArgs(row);
  return { type: 'handoff_emitted', call_id: row.call_id, from: context.pinned?.persona ?? '', to, brief };
}

/** The running hand-off with this effect, or undefined. */
export function runningHandoff(context: SessionContext, effectId: string): CallRow | undefined {
  return context.calls.find((row) => row.status === 'running' && row.effect_id === effectId && isHandoff(context, row));
}

/**
 * Decides the outcome of a hand-off's effect: the next persona applies from here on, or the call fails or
 * is cancelled.
 * @param changes returns the events for what differs from the pinned settings.
 */
export function decideHandoff(
  context: SessionContext,
  row: CallRow,
  outcome: ProvisionOutcome,
  changes: (outcome: Extract<ProvisionOutcome, { status: 'ok' }>) => readonly SessionEvent[],
): Decision {
  const { effect_id } = outcome;
  const ended = (status: CallOutcome['status'], text: string, code?: string) =>
    decideCall(context, {
      type: 'call_outcome',
      effect_id,
      call_id: row.call_id,
      status,
      result: {
        content: [{ type: 'text', text }],
        is_error: status !== 'ok',
        ...(code === undefined ? {} : { detail: { code } }),
      },
      duration_ms: 0,
    });
  if (outcome.status === 'failed')
    return ended('error', `The session stays with you: ${outcome.error.message}`, outcome.error.code);
  // After a cancel of the run or the call, or a preempting interrupt, the outcome changes no settings.
  if (outcome.status === 'cancelled' || context.aborting || row.cancel || row.preempted)
    return ended('cancelled', 'The hand-off was interrupted. The session stays with its persona.');
  const to = outcome.provision.persona.name;
  const end = ended('ok', `${to} now continues this session.`);
  if (end.kind !== 'events') return end;
  const from = context.pinned?.persona ?? '';
  const stepEnd = unfinishedStepEnd(context);
  const changed = changes(outcome).map((event) =>
    event.type === 'persona_changed' ? { ...event, handoff: { call_id: row.call_id, from } } : event,
  );
  return events(...(stepEnd ? [stepEnd] : []), ...changed, ...end.events);
}

/** The briefing for the next persona, once all calls of the batch have results; or null. */
export function nextBriefing({ relay, calls, turn }: SessionContext): SessionEvent | null {
  const row = relay.owes === null ? undefined : calls.find(({ call_id }) => call_id === relay.owes);
  if (!row || calls.some(({ status }) => status !== 'ended')) return null;
  const { brief } = handoffArgs(row);
  const text = `Handed off to you by ${relay.from ?? 'another persona'}:\n${brief}`;
  return {
    type: 'message_injected',
    command_id: row.call_id,
    origin: 'direct',
    seam: HANDOFF_SEAM,
    turn,
    message: userText(text),
  };
}

/**
 * The run's hand-offs after one more. The next persona's briefing is still to be delivered, and its limits count from
 * the usage of the run so far (HANDOFF-3).
 * @param elapsedMs the time that has counted against the time budget so far, in milliseconds.
 */
export function relayAfterHandoff(
  { relay, turns_counted, count }: SessionContext,
  { call_id, from }: NonNullable<EventOf<'persona_changed'>['handoff']>,
  elapsedMs: number,
): Relay {
  const { tokens, nano_usd } = count;
  return {
    count: relay.count + 1,
    from,
    owes: call_id,
    since: { turns: turns_counted, tokens, nano_usd, ms: elapsedMs },
  };
}
