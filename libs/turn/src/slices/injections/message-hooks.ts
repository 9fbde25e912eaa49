/**
 * The guard: `user_prompt_submit` hooks check steers and follow-ups before a model reads them, like the prompt. A
 * blocked message is never delivered. Whether a message is queued at all: `decideInjection` (queue.ts).
 *
 * GUARD-1  A message without a verdict is not delivered, and a seam that would deliver it waits (`waitsForVerdict` in
 *     seams.ts). In an aborting run the seam does not wait, and the message stays queued.
 * GUARD-2  Consults never overlap: the guard waits for an open one. Then it precedes other consults, because an
 *     accepted message may stop the work that they check. Interrupts are checked first, then other steers, then
 *     follow-ups.
 * GUARD-3  The guard checks from the first turn of a run to its teardown, because hooks belong to a run. The last seam
 *     of a run also needs verdicts for its `audit_only` messages. Messages that arrive at other times are checked
 *     afterwards, in this run or the next; so are messages whose check was cancelled.
 * GUARD-4  A verdict is about the checked text. A changed text is checked again.
 */

import type { ConsultOutcome, EventOf, JsonObject, SessionEvent } from '@coxswain/protocol';
import type { SessionContext } from '../../core/context.ts';
import { hooksFor, isAsking, payloadHead, recordedPayload } from '../hooks/consult.ts';
import type { OpenConsult } from '../hooks/state.ts';
import { interruption } from '../suspension/suspension.ts';
import { channelOf } from './channels.ts';
import { preempt } from './preempt.ts';
import type { PendingFollowup, PendingInjection } from './state.ts';
import { awaitsVerdict } from './waiting.ts';

const GUARDED =
  /^(assistant_streaming|function_execute|function_awaiting_approval|steering_check|daemon_idle|suspended)\./;

const LOOP_EXIT = 'tearing_down.loop_exit';

/**
 * The next event of the guard: a `hook_call`, or `guard_ended` if no hook's condition matches. Null if there is nothing to
 * check, if the guard must wait (GUARD-2, GUARD-3), and once all hooks of its consult are called.
 */
export function guardConsult(context: SessionContext, leaf: string, effectId: string): SessionEvent | null {
  if (context.hooks.length === 0) return null;
  const { consult } = context;
  if (consult !== null && !(isOfGuard(consult) && isAsking(context))) return null;
  const message = consult === null ? nextToGuard(context, leaf) : queuedMessage(context, consult.command_id);
  if (!message) return null;
  const payload = consult?.payload ?? guardPayload(context, message);
  const hooks = hooksFor(context, 'user_prompt_submit', context.pinned?.persona ?? '', payload);
  const hook = hooks[consult?.hooks.length ?? 0];
  const { command_id } = message;
  // The condition of no hook matches, so the message is accepted.
  if (!hook) return consult ? null : { type: 'guard_ended', command_id, verdict: 'allowed' };
  const effect_id = consult?.effect_id ?? effectId;
  const recorded = recordedPayload(consult, payload);
  return { type: 'hook_call', hook: hook.id, point: 'user_prompt_submit', effect_id, command_id, ...recorded };
}

/** Whether a consult belongs to the guard: it is about a queued message, not about the prompt of a run. */
export function isOfGuard(consult: OpenConsult): consult is OpenConsult & { readonly command_id: string } {
  return consult.point === 'user_prompt_submit' && consult.command_id !== undefined;
}

function guardPayload(context: SessionContext, message: PendingInjection | PendingFollowup): JsonObject {
  const head = payloadHead(context, 'user_prompt_submit');
  return { ...head, prompt: message.body, origin: channelOf(message) };
}

function nextToGuard(context: SessionContext, leaf: string): PendingInjection | PendingFollowup | undefined {
  if (context.aborting) return undefined;
  const unchecked = (injection: PendingInjection | PendingFollowup) => awaitsVerdict(context, injection);
  // The last seam of a run delivers only `audit_only` messages. The others are checked in the next run.
  if (leaf === LOOP_EXIT) return context.pending.find((one) => one.mode === 'audit_only' && unchecked(one));
  if (!GUARDED.test(leaf)) return undefined;
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

/**
 * The events after the check of a steer or follow-up by user_prompt_submit hooks.
 * @param block the hook that blocks it and its reason, or null.
 */
export function afterGuard(
  context: SessionContext,
  consult: OpenConsult & { readonly command_id: string },
  outcome: ConsultOutcome,
  block: { readonly hook: string; readonly reason: string | undefined } | null,
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
  // (GUARD-4).
  if (isBrokenOff || message?.body !== payload.prompt) return [ended('none')];
  if (!block) return [ended('allowed')];
  const { hook, reason } = block;
  return [
    {
      type: 'hook_vetoed',
      hook,
      point: 'user_prompt_submit',
      command_id,
      decision: 'block',
      ...(reason === undefined ? {} : { reason }),
    },
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
      one.command_id === command_id ? { ...one, allowed: true as const, ...interruption(context, one) } : one,
    );
  const injection = context.pending.find((one) => one.command_id === command_id);
  return {
    consult: null,
    ...(injection ? { pending: marked(context.pending) } : { followups: marked(context.followups) }),
    // A preempting interrupt takes effect after its verdict.
    ...(injection?.preempt ? preempt(context, command_id, injection.actor) : {}),
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
