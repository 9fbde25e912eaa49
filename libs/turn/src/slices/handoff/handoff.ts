/**
 * Hand-offs: which may begin, what becomes of the persona's hold on the run, and what the next one is told first.
 *
 * H1  A hand-off is the last call of its batch: it begins when all others have their results. The other persona has the
 *     session from the record of its good end on; what is left of the turn is the persona's whose turn it was.
 * H2  The first hand-off of a batch wins. One that a rule, a hook or a person has refused was none.
 * H3  What the start allows the run goes on counting; what the personas allow themselves counts from where each takes over.
 */

import {
  BOUNDS,
  type CallOutcome,
  type EventOf,
  HANDOFF,
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
import { leavesStep } from '../steps/steps.ts';
import type { Relay } from './state.ts';

/** The seam under which a brief stands in the journal: it is said as soon as the batch has its results. */
export const HANDOFF_SEAM = 'handoff';

/** Whether a call hands the session over. */
function isHandoff({ tools }: SessionContext, { tool }: Pick<CallRow, 'tool'>): boolean {
  return tool === HANDOFF && tools[tool]?.by_session === true;
}

/** To whom a call hands the session, and what they are told. What does not fit its schema names nobody. */
export function handoffArgs({ args }: Pick<CallRow, 'args'>): HandoffArgs {
  const { to, brief } = (args ?? {}) as JsonObject;
  return { to: typeof to === 'string' ? to : '', brief: typeof brief === 'string' ? brief : '' };
}

/** Whether a call is to wait until all others have their results (H1); this one aside. */
export function waitsForBatch(context: SessionContext, row: CallRow, except?: string): boolean {
  if (!isHandoff(context, row) || comesBefore(context, row)) return false;
  return context.calls.some((other) => other !== row && other.status !== 'ended' && other.call_id !== except);
}

/** The hand-off of the batch that counts, where it is another one than this (H2). */
function comesBefore(context: SessionContext, row: CallRow): CallRow | undefined {
  const first = context.calls.find(
    (other) => isHandoff(context, other) && (other.status !== 'ended' || other.ended === 'ok'),
  );
  return first === row ? undefined : first;
}

/** Why a hand-off that rules and people let begin cannot, or null. */
export function handoffRefusal(
  context: SessionContext,
  row: CallRow,
): { readonly code: string; readonly text: string } | null {
  const { to } = handoffArgs(row);
  const first = comesBefore(context, row);
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

/** What is said of a hand-off before anything is done for it, once; null where it was said. */
export function emitsHandoff(context: SessionContext, row: CallRow): SessionEvent | null {
  if (!isHandoff(context, row) || row.handoff !== undefined) return null;
  const { to, brief } = handoffArgs(row);
  return { type: 'handoff_emitted', call_id: row.call_id, from: context.pinned?.persona ?? '', to, brief };
}

/** The running call that a resolved persona is for, or undefined. */
export function handsOver(context: SessionContext, effectId: string): CallRow | undefined {
  return context.calls.find((row) => row.status === 'running' && row.effect_id === effectId && isHandoff(context, row));
}

/**
 * Decides what came of looking the other persona up: it has the session from here on, or its call has failed.
 * @param changes what differs from what was pinned.
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
  // What came too late changes nobody's hold.
  if (outcome.status === 'cancelled' || context.aborting || row.cancel || row.preempted)
    return ended('cancelled', 'The hand-off was interrupted. The session stays with its persona.');
  const to = outcome.provision.persona.name;
  const end = ended('ok', `${to} now continues this session.`);
  if (end.kind !== 'events') return end;
  const from = context.pinned?.persona ?? '';
  const left = leavesStep(context);
  const changed = changes(outcome).map((event) =>
    event.type === 'persona_changed' ? { ...event, handoff: { call_id: row.call_id, from } } : event,
  );
  return events(...(left ? [left] : []), ...changed, ...end.events);
}

/** What the persona that has taken over is told first, once all results stand; or null. */
export function owedBrief({ relay, calls, turn }: SessionContext): SessionEvent | null {
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

/** The relay once another persona has the session. */
export function takenOver(
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
