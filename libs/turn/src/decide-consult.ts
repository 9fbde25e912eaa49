/** What the answers of a consult cause, point by point. A registration that failed and fails closed refuses. */
import {
  assertNever,
  type ConsultOutcome,
  type HookAnswer,
  type HookPoint,
  isWrongAnswer,
  type SessionEvent,
} from '@coxswain/protocol';
import { isAnnounced } from './announcements.ts';
import { refusedWhileAsking } from './approvals.ts';
import { settleCancelled } from './cancelled-call.ts';
import { cancellerOf, unseenText } from './canceller.ts';
import { afterVeto } from './compaction.ts';
import type { AskedSuspension, CallRow, OpenConsult, SessionContext } from './context.ts';
import { parkRequested } from './decide-suspend.ts';
import { because, type Decision, events, late } from './decision.ts';
import { decideEditChecked, isEditSettled, isOfEdit } from './edited-calls.ts';
import { guardDecided, isOfGuard } from './guard.ts';
import { hookReminders } from './hook-reminders.ts';
import { deferredReports, untrackedJobs } from './jobs.ts';
import { denied, ended } from './next.ts';
import * as q from './queries.ts';
import { returnedEnd, rewriteResult } from './rewrite-result.ts';
import { stepConsulted } from './steps.ts';

/** Decides the outcome of the open consult. Pure. */
export function decideConsult(context: SessionContext, outcome: ConsultOutcome, atMs: number): Decision {
  const { consult } = context;
  if (consult?.effect_id !== outcome.effect_id) return late(outcome.effect_id);
  const row = consult.call_id === undefined ? undefined : q.callRow(context, consult.call_id);
  const isSettled = row?.cancel !== undefined || isEditSettled(context, consult);
  const unwanted = outcome.status === 'cancelled' && (context.aborting || isSettled);
  const answers = unwanted ? outcome.answers : answersOf(consult, outcome);
  return events(
    ...answers.map((answer) => hookReturned(consult, answer)),
    ...untrackedJobs(context, answers),
    ...deferredReports(context, consult, answers),
    ...hookReminders(context, consult, answers, atMs),
    ...ending(context, consult, { ...outcome, answers }, atMs),
  );
}

function ending(context: SessionContext, consult: OpenConsult, outcome: ConsultOutcome, atMs: number): SessionEvent[] {
  const { point, effect_id, call_id } = consult;
  if (isOfGuard(consult)) return guardDecided(context, consult, outcome, blocked(context, outcome.answers));
  if (isOfEdit(consult)) {
    const failed = (answer: HookAnswer) => failsClosed(context, answer);
    return decideEditChecked(context, consult, outcome.answers, failed, atMs);
  }
  if (isAnnounced(point)) {
    const told: SessionEvent = { type: 'announced', point, effect_id };
    return point === 'OnApprovalRequested' ? [told, ...refusedWhileAsking(context, consult, outcome)] : [told];
  }
  return [
    ...consequences(context, consult, outcome),
    { type: 'consult_ended', point, effect_id, ...(call_id === undefined ? {} : { call_id }) },
  ];
}

// One answer per registration that was asked. One that is missing has failed: silence must not admit anything.
function answersOf(consult: OpenConsult, outcome: ConsultOutcome): HookAnswer[] {
  return consult.hooks.map((hook, index) => {
    const answer = outcome.answers[index];
    const own = answer?.hook === hook ? answer : outcome.answers.find((candidate) => candidate.hook === hook);
    return own ?? { hook, failure: { code: 'hook_unavailable', message: 'the hook did not answer' } };
  });
}

function hookReturned(consult: OpenConsult, answer: HookAnswer): SessionEvent {
  return {
    type: 'hook_returned',
    point: consult.point,
    effect_id: consult.effect_id,
    ...(consult.call_id === undefined ? {} : { call_id: consult.call_id }),
    ...(consult.command_id === undefined ? {} : { command_id: consult.command_id }),
    ...answer,
  };
}

function consequences(context: SessionContext, consult: OpenConsult, outcome: ConsultOutcome): SessionEvent[] {
  const row = consult.call_id === undefined ? undefined : q.callRow(context, consult.call_id);
  // A call that was cancelled while hooks were asked has its result; a returned one still needs it.
  const open = row && row.status !== 'ended' ? row : undefined;
  switch (consult.point) {
    case 'session_start':
    case 'post_compact':
    case 'post_turn':
    case 'file_edited':
    case 'session_error':
    case 'session_end':
    case 'session_idle':
    case 'post_resume':
    case 'pre_finish':
    case 'on_unsettled_detected':
    case 'post_finish':
    case 'permission_replied':
    case 'loop_checkpoint':
    case 'OnApprovalRequested':
    case 'OnPersonaPaused':
    case 'OnPersonaResumed':
    case 'OnBudgetThreshold':
      return [];
    case 'PreStep':
    case 'PostStep':
      return context.aborting
        ? []
        : stepConsulted(context, consult.point, outcome, (answer) => failsClosed(context, answer));
    case 'OnHandoffEmitted':
      return open && !context.aborting ? handoffVetted(context, open, outcome) : [];
    case 'pre_suspend':
      return context.aborting ? [] : suspensionGuarded(context, outcome);
    case 'pre_compact':
      return context.aborting ? [] : compactionVetted(context, outcome);
    case 'transform_context':
      return context.aborting ? [] : contextTransformed(context, outcome);
    case 'user_prompt_submit':
      return context.aborting ? [] : promptGuarded(context, outcome);
    case 'PreToolUse':
      return open && !context.aborting ? vetted(context, open, outcome) : [];
    case 'gate_tool_calls':
      return context.aborting ? [] : gated(context, consult, outcome);
    case 'permission_asked':
      return open && !context.aborting ? asked(context, open, outcome) : [];
    case 'PostToolUse':
      return open ? rewritten(context, open, outcome) : [];
    default:
      return assertNever(consult.point);
  }
}

// By what was so when it was asked: the table may have changed since.
function failsClosed({ consult }: SessionContext, answer: HookAnswer): boolean {
  if (answer.failure === undefined) return false;
  return isWrongAnswer(answer.failure) || consult?.fail_open?.includes(answer.hook) !== true;
}

function vetoed(point: HookPoint, hook: string, decision: string, reason?: string, callId?: string): SessionEvent {
  return {
    type: 'hook_vetoed',
    hook,
    point,
    ...(callId === undefined ? {} : { call_id: callId }),
    decision,
    ...(reason === undefined ? {} : { reason }),
  };
}

function promptGuarded(context: SessionContext, outcome: ConsultOutcome): SessionEvent[] {
  const block = blocked(context, outcome.answers);
  if (!block) return [];
  const { hook, reason, code } = block;
  const error = { code, message: `hook ${hook} blocked the prompt${because(reason)}` };
  return [
    vetoed('user_prompt_submit', hook, 'block', reason),
    { type: 'run_failed', source: 'prompt', error, stop_reason: 'user_prompt_submit_blocked' },
  ];
}

/** The first that blocks what is submitted, by its verdict or because it failed and fails closed. */
function blocked(context: SessionContext, answers: readonly HookAnswer[]) {
  for (const { hook, verdict, failure, ...rest } of answers) {
    if (failure && failsClosed(context, { hook, failure, ...rest }))
      return { hook, reason: failure.message, code: failure.code };
    if (verdict?.kind === 'block') return { hook, reason: verdict.reason, code: 'prompt_blocked' };
  }
  return null;
}

function suspensionGuarded(context: SessionContext, outcome: ConsultOutcome): SessionEvent[] {
  const { suspend } = context;
  // Withdrawn while the hooks were asked, or too late.
  if (!suspend || context.aborting) return [];
  for (const answer of outcome.answers) {
    const closed = failsClosed(context, answer);
    if (!closed && answer.verdict?.kind !== 'block') continue;
    const reason = answer.verdict?.kind === 'block' ? answer.verdict.reason : answer.failure?.message;
    return [vetoed('pre_suspend', answer.hook, 'block', reason), notSuspended(context, suspend, answer.hook, reason)];
  }
  return [];
}

// Whoever asked is told: a person by the outcome of the command, the model by a reminder, as its call had gone well.
function notSuspended(
  context: SessionContext,
  { command_id, call_id = '', actor }: AskedSuspension,
  hook: string,
  reason: string | undefined,
): SessionEvent {
  const text = `Hook ${hook} denied the suspension of the session${because(reason)}.`;
  if (command_id !== undefined) {
    return {
      type: 'control_outcome',
      control: 'suspend',
      command_id,
      status: 'blocked',
      target: context.session_id,
      ...(actor ? { actor } : {}),
      reason: text,
    };
  }
  return {
    type: 'message_injected',
    command_id: call_id,
    origin: 'direct',
    seam: 'direct',
    turn: context.turn,
    message: { role: 'reminder', content: [{ type: 'text', text }] },
  };
}

// A hook that fails closed refuses the pass: what it would have had to say of what is archived is not known.
function compactionVetted(context: SessionContext, outcome: ConsultOutcome): SessionEvent[] {
  for (const answer of outcome.answers) {
    const { verdict, failure } = answer;
    const closed = failsClosed(context, answer);
    if (!closed && verdict?.kind !== 'block') continue;
    const reason = verdict?.kind === 'block' ? verdict.reason : failure?.message;
    return [vetoed('pre_compact', answer.hook, 'block', reason), ...afterVeto(context, answer.hook)];
  }
  return [];
}

// What a hook wanted to keep from the model is not known when it fails, so nothing is sent.
function contextTransformed(context: SessionContext, outcome: ConsultOutcome): SessionEvent[] {
  const failed = outcome.answers.find((answer) => failsClosed(context, answer));
  if (!failed?.failure) return [];
  const { code, message } = failed.failure;
  const error = { code, message: `hook ${failed.hook} could not transform the context: ${message}` };
  return [{ type: 'run_failed', source: 'model', error, stop_reason: 'error' }];
}

function vetted(context: SessionContext, row: CallRow, outcome: ConsultOutcome): SessionEvent[] {
  const list: SessionEvent[] = [];
  for (const answer of outcome.answers) {
    if (failsClosed(context, answer))
      return [...list, ...refusedByHook(row, 'PreToolUse', answer.hook, answer.failure?.message)];
    if (answer.verdict?.kind === 'deny')
      return [...list, ...refusedByHook(row, 'PreToolUse', answer.hook, answer.verdict.reason)];
    if (answer.verdict?.kind === 'rewrite_args') {
      list.push({
        type: 'call_args_rewritten',
        call_id: row.call_id,
        args: answer.verdict.args,
        by: `hook:${answer.hook}`,
      });
    }
  }
  const last = list.findLastIndex(({ type }) => type === 'call_args_rewritten');
  if (outcome.needs_approval && list[last]) list[last] = { ...list[last], needs_approval: true } as SessionEvent;
  const problem = outcome.args_problem;
  if (problem)
    list.push(ended(row, 'error', `${problem.message} The tool call was not run.`, { detail: { code: problem.code } }));
  return list;
}

function handoffVetted(context: SessionContext, row: CallRow, outcome: ConsultOutcome): SessionEvent[] {
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
    vetoed(point, hook, 'deny', reason, row.call_id),
    denied(
      row,
      { by: 'hook', hook, ...(reason === undefined ? {} : { reason }) },
      `Denied by hook ${hook}${because(reason)}.`,
    ),
  ];
}

function gated(context: SessionContext, consult: OpenConsult, outcome: ConsultOutcome): SessionEvent[] {
  const list: SessionEvent[] = [];
  const calls = consult.payload.calls as unknown as ReadonlyArray<{ readonly call_id: string }>;
  const settled = new Set<string>();
  for (const answer of outcome.answers) {
    if (answer.not_run || (answer.failure && !failsClosed(context, answer))) continue;
    for (const [index, { call_id }] of calls.entries()) {
      const row = q.callRow(context, call_id);
      if (!row || row.status === 'ended' || settled.has(call_id)) continue;
      const entry = answer.verdict?.kind === 'gate' ? answer.verdict.calls[index] : undefined;
      const said = entry && 'allow' in entry ? entry : null;
      if (said?.allow) continue;
      settled.add(call_id);
      const unread = entry && 'invalid' in entry ? entry.invalid : 'the hook returned no verdict for this call';
      const reason = said ? said.reason : (answer.failure?.message ?? unread);
      list.push(
        vetoed('gate_tool_calls', answer.hook, 'deny', reason, call_id),
        denied(
          row,
          { by: said ? 'hook' : 'gate_unavailable', hook: answer.hook, ...(reason === undefined ? {} : { reason }) },
          `Denied by gate ${answer.hook}${because(reason)}.`,
        ),
      );
    }
  }
  return list;
}

function asked(context: SessionContext, row: CallRow, outcome: ConsultOutcome): SessionEvent[] {
  for (const answer of outcome.answers) {
    if (failsClosed(context, answer))
      return refusedByHook(row, 'permission_asked', answer.hook, answer.failure?.message);
    if (answer.verdict?.kind !== 'decision') continue;
    const { decision, reason } = answer.verdict;
    if (decision === 'deny') return refusedByHook(row, 'permission_asked', answer.hook, reason);
    return [vetoed('permission_asked', answer.hook, decision, reason, row.call_id)];
  }
  return [];
}

/** What a model must know of a call whose result it does not see: it must not repeat what took effect. */
function effectOf(status: NonNullable<CallRow['returned']>['status']): string {
  if (status === 'ok') return 'The tool call ran and took effect. Do not repeat it to see its result.';
  if (status === 'error') return 'The tool call ran and ended with an error. It may have taken effect.';
  return 'The outcome of this tool call is unknown.';
}

function rewritten(context: SessionContext, row: CallRow, outcome: ConsultOutcome): SessionEvent[] {
  if (!row.returned) return [];
  const { duration_ms, park } = row.returned;
  if (row.cancel)
    return settleCancelled(context, row, { status: 'cancelled', result: row.returned.result, duration_ms });
  if (outcome.status === 'cancelled' && context.aborting)
    return [ended(row, 'cancelled', unseenText(cancellerOf(context, row)))];
  let { result } = row.returned;
  for (const answer of outcome.answers) {
    if (failsClosed(context, answer)) {
      const failed = `hook ${answer.hook} failed${because(answer.failure?.message)}`;
      const text = `${effectOf(row.returned.status)} The result is withheld: ${failed}.`;
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
  // A model that is told that its call to park went wrong must not find the session parked.
  return [end, ...parkRequested(context, { call_id: row.call_id, status: end.status, result, park })];
}
