/**
 * Open children: the child sessions that have not reported their end.
 *
 * CHILD-1  A child is open from `child_started` to `child_ended`; or to the end of its call, if its start command was not
 *     stored by then (`childAfterCall`).
 * CHILD-2  The share of an open child is reserved in the budget of its parent. The child's usage counts from its
 *     `child_ended` on.
 *
 * This file also decides the commands between sessions: start, cancel and report of a child, and messages. In
 * libs/session, `reportOf` (crew-effects.ts) builds the report, and cuts a long answer.
 */

import {
  addUsage,
  BOUNDS,
  type ChildEndedBody,
  type DelegateArgs,
  type EventOf,
  type ParentReportOutcome,
  type SessionEvent,
  sessionActor,
  type Usage,
  userText,
} from '@coxswain/protocol';
import type { Command } from '../../core/commands.ts';
import type { SessionContext } from '../../core/context.ts';
import { type Decision, events, late, reasonMember, reject } from '../../core/decision.ts';
import type { Effect } from '../../core/effect.ts';
import { nextIndex, openEffect, type Placed, type PlacedEvent } from '../../core/journal-place.ts';
import { isEnded, type MachineState, topStateOf } from '../../machine/state.ts';
import type { BudgetCount } from '../budgets/state.ts';
import { decideCall } from '../calls/outcome.ts';
import { failChild, restartChild } from '../calls/row-changes.ts';
import type { CallRow } from '../calls/state.ts';
import { callRow, changeCall } from '../calls/table.ts';
import { copiedFrom } from '../copies/copies.ts';
import { decideInjection } from '../injections/queue.ts';
import { promptOfMessage } from '../runs/run-starts.ts';
import { shareOf } from './delegation.ts';
import type { OpenChild } from './state.ts';

/** Decides `start_child`, the first input of a child session: its parent starts its first run. */
export function decideStartChild({ context }: MachineState, input: Command<'start_child'>): Decision {
  if (context.run > 0) return reject(input, 'session_exists', 'the session already had a run');
  const { prompt, parent, reminders, ...settings } = input.body;
  return events(
    ...copiedFrom(input),
    {
      type: 'prompt_received',
      command_id: input.command_id,
      run: 1,
      messages: [userText(prompt)],
      actor: sessionActor(parent.session),
      settings,
      parent,
    },
    ...reminders.map((reminder): SessionEvent => ({ type: 'reminder_inherited', ...reminder })),
  );
}

/**
 * Decides `cancel_child`: the parent cancels the first run of this session, because only this run belongs to the
 * parent's call. After that run, and from any other sender, the command is rejected.
 */
export function decideCancelChild(state: MachineState, input: Command<'cancel_child'>): Decision {
  const { context } = state;
  const { from, effect_id, reason } = input.body;
  if (context.parent?.session !== from || context.parent.effect_id !== effect_id)
    return reject(input, 'not_running', `session ${from} did not start this session with effect ${effect_id}`);
  if (isEnded(state) || context.run !== 1)
    return reject(input, 'not_running', 'the delegated run of this session has ended');
  return events({
    type: 'control_outcome',
    control: 'cancel',
    command_id: input.command_id,
    status: context.stop_reason === 'cancelled' ? 'already_cancelled' : 'cancelled',
    target: context.session_id,
    actor: sessionActor(from),
    ...reasonMember(reason),
  });
}

/**
 * Decides `child_ended`, the report of a child at the end of its first run: its call gets an outcome; or `restarts` in the
 * event orders another child, which `nextChild` (delegation.ts) starts. If the call no longer runs for this child, only the
 * usage counts. A report of a child that is not open is rejected.
 */
export function decideChildEnded(state: MachineState, input: Command<'child_ended'>, atMs: number): Decision {
  const { context } = state;
  const report = input.body;
  const child = context.children.find(({ effect_id }) => effect_id === report.effect_id);
  if (!child)
    return reject(input, 'call_not_open', `effect ${report.effect_id} has no open child session`, {
      field: 'effect_id',
    });
  const { session, stop_reason, turns, usage, nano_usd, error } = report;
  const ended = {
    type: 'child_ended',
    command_id: input.command_id,
    call_id: child.call_id,
    effect_id: child.effect_id,
    session,
    stop_reason,
    turns,
    usage,
    nano_usd,
    ...(error ? { error } : {}),
  } as const;
  const row = isEnded(state) ? undefined : callRow(context, child.call_id);
  if (row?.status !== 'running' || row.effect_id !== child.effect_id) return events(ended);
  if (willRestart(context, row, child, report)) return events({ ...ended, restarts: true });
  const duration_ms = Math.max(0, atMs - child.started_at_ms);
  const { status, result } = report;
  const outcome = { type: 'call_outcome', call_id: row.call_id, effect_id: child.effect_id, status, result } as const;
  const decision = decideCall(context, { ...outcome, duration_ms });
  return decision.kind === 'events' ? events(ended, ...decision.events) : decision;
}

/**
 * Whether another child takes the place of one that has ended with `error`: the call asks for it (`restart`) and has restarts
 * left, neither the call nor the run is being stopped, and the budget of the run has a share left.
 */
function willRestart(context: SessionContext, row: CallRow, child: OpenChild, report: ChildEndedBody): boolean {
  const { restart = 'never', max_restarts = 1 } = row.args as unknown as DelegateArgs;
  if (report.stop_reason !== 'error' || restart !== 'on_failure' || child.restart >= max_restarts) return false;
  if (row.cancel || row.preempted || context.aborting) return false;
  const after = {
    ...context,
    children: context.children.filter((one) => one !== child),
    count: counted(context.count, report.usage, report.nano_usd),
  };
  return shareOf(after, row) !== null;
}

/**
 * Decides `message`, from another session. It is rejected if its chain of messages is too long. Otherwise by its mode:
 * - `prompt` starts the next run, if the run has ended and no report to the parent is open. In the teardown, and while that
 *   report is open, it is queued to start the next run (`runOfLateMessage`, runs/run-starts.ts). During a run it is a follow-up.
 * - `followup` is queued as one, also after the end of a run.
 * - `interrupt` is a steer that interrupts, `steer` one that does not.
 */
export function decideMessage(state: MachineState, input: Command<'message'>, atMs: number): Decision {
  const { context } = state;
  const { from: session, hops, body, mode } = input.body;
  if (hops > BOUNDS.hopsMax)
    return reject(
      input,
      'too_many_hops',
      `the chain of messages between sessions has ${hops} hops; the limit is ${BOUNDS.hopsMax}`,
    );
  const from = { session, hops };
  const actor = sessionActor(session);
  if (mode === 'prompt' && isEnded(state) && !context.notice) {
    return events(promptOfMessage(context, { command_id: input.command_id, body, actor, from }));
  }
  const isPrompt = mode === 'prompt';
  if (isPrompt || mode === 'followup') {
    const begins = isPrompt && (isEnded(state) || topStateOf(state) === 'tearing_down');
    const origin = { from, ...(begins ? { begins_run: true as const } : {}) };
    return decideInjection(context, { ...input, verb: 'followup', body: { body }, actor }, atMs, origin);
  }
  const seamMode = mode === 'interrupt' ? 'interrupt_immediate' : 'finish_step';
  return decideInjection(context, { ...input, verb: 'steer', body: { body, mode: seamMode }, actor }, atMs, { from });
}

/** Decides the outcome of the report to the parent. */
export function decideParentReportOutcome(context: SessionContext, outcome: ParentReportOutcome): Decision {
  if (context.notice?.id !== outcome.effect_id || !context.parent) return late(outcome.effect_id);
  const { effect_id, error } = outcome;
  return events({
    type: 'parent_notified',
    effect_id,
    session: context.parent.session,
    ...(error ? { error } : {}),
  });
}

/** A child starts. The first child of a call uses the effect of the call; a restarted one has an effect of its own. */
export function childStarted(
  context: SessionContext,
  event: EventOf<'child_started'> & PlacedEvent,
): Partial<SessionContext> {
  const { call_id, effect_id, session, persona, restart = 0, budget } = event;
  const child: OpenChild = {
    effect_id,
    call_id,
    session,
    persona,
    started_at_ms: event.at_ms,
    restart,
    ...(budget?.tokens === undefined ? {} : { tokens: budget.tokens }),
    ...(budget?.nano_usd === undefined ? {} : { nano_usd: budget.nano_usd }),
  };
  const children = [...context.children, child];
  if (restart === 0) return { children };
  const { epoch } = context;
  return {
    children,
    ...changeCall(context, call_id, (row) => restartChild(row, effect_id, epoch)),
    next_effect: nextIndex(context, event) + 1,
  };
}

/** A child has reported its end: it is no longer open, and its usage counts. */
export function childEnded(context: SessionContext, event: EventOf<'child_ended'>): Partial<SessionContext> {
  const { effect_id, usage, nano_usd, call_id } = event;
  const { spent_by_children: before, count } = context;
  const sum = before.nano_usd === null || nano_usd === null ? null : before.nano_usd + nano_usd;
  const ended = context.children.find((child) => child.effect_id === effect_id);
  return {
    children: context.children.filter((child) => child !== ended),
    spent_by_children: { usage: addUsage(before.usage, usage), nano_usd: sum },
    count: counted(count, usage, nano_usd),
    // The next child of the call gets a new effect.
    ...(event.restarts ? changeCall(context, call_id, (row) => failChild(row, (ended?.restart ?? 0) + 1)) : {}),
  };
}

/** A call has ended: its child is removed if the start command of the child was not stored (CHILD-1). */
export function childAfterCall(context: SessionContext, { call_id }: EventOf<'call_ended'>): Partial<SessionContext> {
  if (context.children.length === 0) return {};
  const row = callRow(context, call_id);
  // With PostToolUse hooks, a delegation that could not start has the status `returned` before its end.
  if ((row?.status !== 'running' && row?.status !== 'returned') || row.accepted !== undefined) return {};
  return { children: context.children.filter(({ effect_id }) => effect_id !== row.effect_id) };
}

/** The usage that counts against budgets, with that of a child. An unknown cost counts as 0. */
function counted(count: BudgetCount, usage: Usage, nanoUsd: number | null): BudgetCount {
  return {
    ...count,
    tokens: count.tokens + usage.input_tokens + usage.output_tokens,
    nano_usd: count.nano_usd + (nanoUsd ?? 0),
  };
}

/** A run has ended. The first run of a child session must be reported to its parent, unless the child is detached. */
export function parentReportOpened(context: SessionContext, event: Placed<'agent_end'>): Partial<SessionContext> {
  if (context.run !== 1 || !context.parent || context.parent.detached) return {};
  const { effect, next_effect } = openEffect(context, event);
  return { notice: effect, next_effect };
}

/** The effect of the open report to the parent. */
export function parentReportEffects({ notice, parent }: SessionContext): readonly Effect[] {
  return notice && parent ? [{ kind: 'notify_parent', ...notice, abort: null, parent }] : [];
}
