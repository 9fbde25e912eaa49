/**
 * The events that answers of hooks about calls cause, one function for each hook point. `decideConsult`
 * (hooks/consult-outcome.ts) calls these functions. Answers about approvals and edited calls: `afterOnApprovalRequested`
 * (approvals/approvals.ts) and `decideEditChecked` (approvals/edited-calls.ts). The order of the points: PreToolUse,
 * gate_tool_calls and permission_asked by `function_execute` (machine/chart.ts); OnHandoffEmitted and PostToolUse by
 * `nextBatchEvent` (batch.ts). Which call hooks check next: `nextToVet`, `nextToAskHooks` (batch.ts) and `nextReturned`
 * (table.ts).
 */

import type { ConsultOutcome, HookPoint, SessionEvent } from '@coxswain/protocol';
import type { SessionContext } from '../../core/context.ts';
import { reasonSuffix } from '../../core/decision.ts';
import { buildHookDecision, failsClosed } from '../hooks/answers.ts';
import type { OpenConsult } from '../hooks/state.ts';
import { suspendRequestOfCall } from '../suspension/requests.ts';
import { cancellerOf, settleCancelled, uncheckedText } from './cancel.ts';
import { buildCallDenied, buildCallEnded, returnedEnd, rewriteResult } from './results.ts';
import type { CallAt, CallRow, ReturnedOutcome } from './state.ts';
import { callRow } from './table.ts';

/**
 * The events after PreToolUse hooks: a `call_args_rewritten` for each rewrite. The last of them has `needs_approval` if
 * the tool requires an approval for the new arguments. The first denial or refusing failure ends the call as `denied`,
 * and later answers do not count. Otherwise invalid rewritten arguments end the call as `error`.
 */
export function afterPreToolUse(context: SessionContext, row: CallRow, outcome: ConsultOutcome): SessionEvent[] {
  const list: SessionEvent[] = [];
  let { args } = row;
  for (const answer of outcome.answers) {
    if (failsClosed(context, answer))
      return [...list, ...refusedByHook({ ...row, args }, 'PreToolUse', answer.hook, answer.failure?.message)];
    if (answer.verdict?.kind === 'deny')
      return [...list, ...refusedByHook({ ...row, args }, 'PreToolUse', answer.hook, answer.verdict.reason)];
    if (answer.verdict?.kind === 'rewrite_args') {
      args = answer.verdict.args;
      list.push({ type: 'call_args_rewritten', call_id: row.call_id, args, by: `hook:${answer.hook}` });
    }
  }
  const last = list.findLastIndex(({ type }) => type === 'call_args_rewritten');
  if (outcome.needs_approval && list[last]) list[last] = { ...list[last], needs_approval: true } as SessionEvent;
  const problem = outcome.args_problem;
  if (problem)
    list.push(
      buildCallEnded(row, 'error', `${problem.message} The tool call was not run.`, { detail: { code: problem.code } }),
    );
  return list;
}

/** The events after OnHandoffEmitted hooks: the first denial or refusing failure ends the call. Without one there are none. */
export function afterOnHandoffEmitted(context: SessionContext, row: CallRow, outcome: ConsultOutcome): SessionEvent[] {
  for (const answer of outcome.answers) {
    const { verdict, failure, hook } = answer;
    const closed = failsClosed(context, answer);
    if (!closed && verdict?.kind !== 'deny') continue;
    return refusedByHook(row, 'OnHandoffEmitted', hook, verdict?.kind === 'deny' ? verdict.reason : failure?.message);
  }
  return [];
}

function refusedByHook(row: CallRow, point: HookPoint, hook: string, reason: string | undefined): SessionEvent[] {
  return [
    buildHookDecision(point, hook, 'deny', reason, { callId: row.call_id }),
    buildCallDenied(
      row,
      { by: 'hook', hook, ...(reason === undefined ? {} : { reason }) },
      `Denied by hook ${hook}${reasonSuffix(reason)}.`,
    ),
  ];
}

/**
 * The events after gate_tool_calls hooks. A call ends as `denied` at the first answer that does not allow it: by a denial, by a
 * refusing failure, or without a valid verdict for this call.
 */
export function afterGate(context: SessionContext, consult: OpenConsult, outcome: ConsultOutcome): SessionEvent[] {
  const list: SessionEvent[] = [];
  const calls = consult.payload.calls as unknown as ReadonlyArray<{ readonly call_id: string }>;
  const denied = new Set<string>();
  for (const answer of outcome.answers) {
    if (answer.not_run || (answer.failure && !failsClosed(context, answer))) continue;
    for (const [index, { call_id }] of calls.entries()) {
      const row = callRow(context, call_id);
      if (!row || row.status === 'ended' || denied.has(call_id)) continue;
      const entry = answer.verdict?.kind === 'gate' ? answer.verdict.calls[index] : undefined;
      const decision = entry && 'allow' in entry ? entry : null;
      if (decision?.allow) continue;
      denied.add(call_id);
      const problem = entry && 'invalid' in entry ? entry.invalid : 'the hook returned no verdict for this call';
      const reason = decision ? decision.reason : (answer.failure?.message ?? problem);
      list.push(
        buildHookDecision('gate_tool_calls', answer.hook, 'deny', reason, { callId: call_id }),
        buildCallDenied(
          row,
          {
            by: decision ? 'hook' : 'gate_unavailable',
            hook: answer.hook,
            ...(reason === undefined ? {} : { reason }),
          },
          `Denied by gate ${answer.hook}${reasonSuffix(reason)}.`,
        ),
      );
    }
  }
  return list;
}

/**
 * The events after permission_asked hooks: only the first answer with a decision or a refusing failure counts. A denial
 * or a refusing failure ends the call as `denied`; `allow` and `ask` cause only a `hook_vetoed`.
 */
export function afterPermissionAsked(context: SessionContext, row: CallRow, outcome: ConsultOutcome): SessionEvent[] {
  for (const answer of outcome.answers) {
    if (failsClosed(context, answer))
      return refusedByHook(row, 'permission_asked', answer.hook, answer.failure?.message);
    if (answer.verdict?.kind !== 'decision') continue;
    const { decision, reason } = answer.verdict;
    if (decision === 'deny') return refusedByHook(row, 'permission_asked', answer.hook, reason);
    return [buildHookDecision('permission_asked', answer.hook, decision, reason, { callId: row.call_id })];
  }
  return [];
}

/** Whether a call with a withheld result took effect: a text for the model, so that it does not repeat such a call. */
function tookEffectText(status: ReturnedOutcome['status']): string {
  if (status === 'ok') return 'The tool call ran and took effect. Do not repeat it to see its result.';
  if (status === 'error') return 'The tool call ran and ended with an error. It may have taken effect.';
  return 'The outcome of this tool call is unknown.';
}

/**
 * The events after PostToolUse hooks: the end of the call with its rewritten result, and then its request to suspend
 * the session (`returned.park`), if one is due. The result is withheld after a refusing failure, and if the end of the
 * run cancelled the consult. If a cancel of the call is open, the answers do not count: `settleCancelled` (cancel.ts).
 */
export function afterPostToolUse(
  context: SessionContext,
  row: CallAt<'returned'>,
  outcome: ConsultOutcome,
): SessionEvent[] {
  const { park } = row.returned;
  if (row.cancel) return settleCancelled(context, row, row.returned);
  if (outcome.status === 'cancelled' && context.aborting)
    return [buildCallEnded(row, 'cancelled', uncheckedText(cancellerOf(context, row)))];
  let { result } = row.returned;
  for (const answer of outcome.answers) {
    if (failsClosed(context, answer)) {
      const failed = `hook ${answer.hook} failed${reasonSuffix(answer.failure?.message)}`;
      const text = `${tookEffectText(row.returned.status)} The result is withheld: ${failed}.`;
      result = {
        content: [{ type: 'text', text }],
        is_error: true,
        detail: { code: answer.failure?.code ?? 'hook_unavailable' },
      };
      break;
    }
    if (answer.verdict?.kind === 'rewrite_result') result = rewriteResult(result, answer.verdict);
  }
  const end = returnedEnd(row, result);
  // If the model gets an error for its call of `park`, the session must not be suspended.
  return [end, ...suspendRequestOfCall(context, { call_id: row.call_id, status: end.status, result, park })];
}
