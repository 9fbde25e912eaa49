/**
 * The answers of a consult, one for each called hook, and the events of single answers and decisions. Whether a failed
 * answer refuses: `failsClosed`.
 */

import {
  type ConsultOutcome,
  failureRefusesAt,
  type HookAnswer,
  type HookPoint,
  isWrongAnswer,
  type SessionEvent,
} from '@coxswain/protocol';
import type { SessionContext } from '../../core/context.ts';
import type { OpenConsult } from './state.ts';

/** One answer for each called registration. A missing one counts as a failure, so `on_error` of the registration decides. */
export function answersOf(consult: OpenConsult, outcome: ConsultOutcome): HookAnswer[] {
  return consult.hooks.map((hook, index) => {
    const answer = outcome.answers[index];
    const own = answer?.hook === hook ? answer : outcome.answers.find((candidate) => candidate.hook === hook);
    return own ?? { hook, failure: { code: 'hook_unavailable', message: 'the hook did not answer' } };
  });
}

/** The event of one answer. */
export function buildHookReturned(consult: OpenConsult, answer: HookAnswer): SessionEvent {
  return {
    type: 'hook_returned',
    point: consult.point,
    effect_id: consult.effect_id,
    ...(consult.call_id === undefined ? {} : { call_id: consult.call_id }),
    ...(consult.command_id === undefined ? {} : { command_id: consult.command_id }),
    ...answer,
  };
}

/**
 * Whether an answer has a failure that refuses; never at points where no failure refuses (`failureRefusesAt`). A verdict
 * that is invalid, or not allowed at its point, always does (`isWrongAnswer`). Any other failure does, also an unreadable
 * return value, unless the registration had `on_error: fail_open` when it was called. The table may have changed since.
 * The host asks during the consult, to know whether to call the next hook. The machine asks about the recorded answers.
 */
export function failsClosed(
  { consult }: { readonly consult: Pick<OpenConsult, 'point' | 'fail_open'> | null },
  { hook, failure }: HookAnswer,
): boolean {
  if (failure === undefined || consult === null || !failureRefusesAt(consult.point)) return false;
  return isWrongAnswer(failure) || consult.fail_open?.includes(hook) !== true;
}

/**
 * The event of a hook's decision. Its name `hook_vetoed` is narrower than its meaning: an `allow` or `ask` of
 * permission_asked is such a decision too.
 * @param about the call that the decision is about, and the command: of a queued message, or of an edited call.
 */
export function buildHookDecision(
  point: HookPoint,
  hook: string,
  decision: string,
  reason: string | undefined,
  { callId, commandId }: { readonly callId?: string; readonly commandId?: string } = {},
): SessionEvent {
  return {
    type: 'hook_vetoed',
    hook,
    point,
    ...(callId === undefined ? {} : { call_id: callId }),
    ...(commandId === undefined ? {} : { command_id: commandId }),
    decision,
    ...(reason === undefined ? {} : { reason }),
  };
}

/**
 * The first hook that blocks a message, by its verdict or by a failure that refuses ({@link failsClosed}), with its reason
 * and a code; or null.
 */
export function firstBlockOfMessage(
  context: SessionContext,
  answers: readonly HookAnswer[],
): { readonly hook: string; readonly reason: string | undefined; readonly code: string } | null {
  for (const answer of answers) {
    const { hook, verdict, failure } = answer;
    if (failure && failsClosed(context, answer)) return { hook, reason: failure.message, code: failure.code };
    if (verdict?.kind === 'block') return { hook, reason: verdict.reason, code: 'prompt_blocked' };
  }
  return null;
}
