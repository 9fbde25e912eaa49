/**
 * Checks of queued messages: `user_prompt_submit` hooks check steers and follow-ups before a model reads them, like the
 * prompt. Each check ends with the event `guard_ended` and a verdict. A blocked message is never delivered. Whether a
 * message is queued at all: `decideInjection` (queue.ts).
 *
 * VERDICT-1  A message without a verdict is not delivered, and a seam that would deliver it waits (`waitsForVerdict` in
 *     seam-passes.ts). In an aborting run the seam does not wait, and the message stays queued.
 * VERDICT-2  Consults never overlap: a check waits for an open one. Then it precedes other consults, because an
 *     accepted message may stop the work that they check. Interrupts are checked first, then other steers, then
 *     follow-ups.
 * VERDICT-3  Checks start from the first turn of a run to its teardown, because hooks belong to a run. The last seam
 *     of a run also needs verdicts for its `audit_only` messages. Messages that arrive at other times are checked
 *     afterwards, in this run or the next; so are messages whose check was cancelled.
 * VERDICT-4  A verdict is about the checked text. A changed text is checked again.
 */

import type { ConsultOutcome, EventOf, JsonObject, SessionEvent } from '@coxswain/protocol';
import type { SessionContext } from '../../core/context.ts';
import { buildHookDecision, firstBlockOfMessage } from '../hooks/answers.ts';
import { hooksFor, isAsking, payloadHead, recordedPayload } from '../hooks/consult.ts';
import type { OpenConsult } from '../hooks/state.ts';
import { interruptMark } from '../suspension/suspension.ts';
import { channelOf } from './channels.ts';
import { preemptOpenWork } from './preempt.ts';
import type { PendingFollowup, PendingInjection } from './state.ts';
import { awaitsVerdict } from './waiting.ts';

/** The states in which checks start; at {@link LOOP_EXIT} only those of `audit_only` messages. */
const CHECKING_STATES =
  /^(assistant_streaming|function_execute|function_awaiting_approval|steering_check|daemon_idle|suspended)\./;

const LOOP_EXIT = 'tearing_down.loop_exit';

/**
 * The next event of a check: a `hook_call`, or `guard_ended` if no hook's condition matches. Null if there is nothing to
 * check, if the check must wait (VERDICT-2, VERDICT-3), and once all hooks of its consult are called.
 */
export function nextMessageCheck(context: SessionContext, leaf: string, effectId: string): SessionEvent | null {
  if (context.hooks.length === 0) return null;
  const { consult } = context;
  if (consult !== null && !(isMessageCheck(consult) && isAsking(context))) return null;
  const message = consult === null ? nextToCheck(context, leaf) : queuedMessage(context, consult.command_id);
  if (!message) return null;
  const payload = consult?.payload ?? messagePayload(context, message);
  const hooks = hooksFor(context, 'user_prompt_submit', context.pinned?.persona ?? '', payload);
  const hook = hooks[consult?.hooks.length ?? 0];
  const { command_id } = message;
  // The condition of no hook matches, so the message is accepted.
  if (!hook) return consult ? null : { type: 'guard_ended', command_id, verdict: 'allowed' };
  const effect_id = consult?.effect_id ?? effectId;
  const recorded = recordedPayload(consult, payload);
  return { type: 'hook_call', hook: hook.id, point: 'user_prompt_submit', effect_id, command_id, ...recorded };
}

/** Whether a consult is a check of a queued message, not of the prompt of a run. */
export function isMessageCheck(consult: OpenConsult): consult is OpenConsult & { readonly command_id: string } {
  return consult.point === 'user_prompt_submit' && consult.command_id !== undefined;
}

function messagePayload(context: SessionContext, message: PendingInjection | PendingFollowup): JsonObject {
  const head = payloadHead(context, 'user_prompt_submit');
  return { ...head, prompt: message.body, origin: channelOf(message) };
}

function nextToCheck(context: SessionContext, leaf: string): PendingInjection | PendingFollowup | undefined {
  if (context.aborting) return undefined;
  const unchecked = (injection: PendingInjection | PendingFollowup) => awaitsVerdict(context, injection);
  // The last seam of a run delivers only `audit_only` messages. The others are checked in the next run.
  if (leaf === LOOP_EXIT) return context.pending.find((one) => one.mode === 'audit_only' && unchecked(one));
  if (!CHECKING_STATES.test(leaf)) return undefined;
  return (
    context.pending.find((one) => one.mode === 'interrupt_immediate' && unchecked(one)) ??
    context.pending.find(unchecked) ??
    context.followups.find(unchecked)
  );
}

function queuedMessage(context: SessionContext, commandId: string): PendingInjection | PendingFollowup | undefined {
  const isIt = (one: PendingInjection | PendingFollowup) => one.command_id === commandId;
  return context.pending.find(isIt) ?? context.followups.find(isIt);
}

/** The events after the check of a steer or follow-up by user_prompt_submit hooks. */
export function afterMessageCheck(
  context: SessionContext,
  consult: OpenConsult & { readonly command_id: string },
  outcome: ConsultOutcome,
): SessionEvent[] {
  const { command_id, effect_id, payload } = consult;
  const ended = (verdict: EventOf<'guard_ended'>['verdict']): SessionEvent => ({
    type: 'guard_ended',
    command_id,
    effect_id,
    verdict,
  });
  const message = queuedMessage(context, command_id);
  const isBrokenOff = outcome.status === 'cancelled' && context.aborting;
  // No verdict: the end of the run cancelled the consult, or meanwhile the message was revoked, collapsed or replaced
  // (VERDICT-4).
  if (isBrokenOff || message?.body !== payload.prompt) return [ended('none')];
  const block = firstBlockOfMessage(context, outcome.answers);
  if (!block) return [ended('allowed')];
  const { hook, reason } = block;
  return [
    buildHookDecision('user_prompt_submit', hook, 'block', reason, { commandId: command_id }),
    {
      type: 'injection_blocked',
      command_id,
      reason: reason === undefined ? `blocked by ${hook}` : `${hook}: ${reason}`,
    },
    ended('blocked'),
  ];
}

/** A check of a queued message has ended. An accepted message is marked as allowed. */
export function guardEnded(context: SessionContext, event: EventOf<'guard_ended'>): Partial<SessionContext> {
  if (event.verdict !== 'allowed') return { consult: null };
  const { command_id } = event;
  const marked = <T extends PendingInjection | PendingFollowup>(list: readonly T[]): readonly T[] =>
    list.map((one) =>
      one.command_id === command_id ? { ...one, allowed: true as const, ...interruptMark(context, one) } : one,
    );
  const injection = context.pending.find((one) => one.command_id === command_id);
  return {
    consult: null,
    ...(injection ? { pending: marked(context.pending) } : { followups: marked(context.followups) }),
    // A preempting interrupt takes effect after its verdict.
    ...(injection?.preempt ? preemptOpenWork(context, command_id, injection.actor) : {}),
  };
}

/** Removes a blocked message. */
export function injectionBlocked(
  context: SessionContext,
  { command_id }: EventOf<'injection_blocked'>,
): Partial<SessionContext> {
  return {
    pending: context.pending.filter((one) => one.command_id !== command_id),
    followups: context.followups.filter((one) => one.command_id !== command_id),
  };
}
