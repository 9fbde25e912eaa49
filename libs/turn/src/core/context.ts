/**
 * The machine's context: everything that a session must remember to decide, as plain, bounded JSON. It is composed of
 * the state of each slice. The transcript is not part of it. Of messages it has only those that a decision still needs,
 * such as queued messages, the prompt of the run, and results that hooks must check.
 */

import { type ApprovalsState, EMPTY_APPROVALS } from '../slices/approvals/state.ts';
import { type BudgetsState, EMPTY_BUDGETS } from '../slices/budgets/state.ts';
import { type CallsState, EMPTY_CALLS } from '../slices/calls/state.ts';
import { type ChildrenState, EMPTY_CHILDREN } from '../slices/children/state.ts';
import { type CompactionState, EMPTY_COMPACTION } from '../slices/compaction/state.ts';
import { EMPTY_HANDOFF, type HandoffState } from '../slices/handoff/state.ts';
import { EMPTY_HOOKS, type HooksState } from '../slices/hooks/state.ts';
import { EMPTY_INJECTIONS, type InjectionsState } from '../slices/injections/state.ts';
import { EMPTY_REMINDERS, type RemindersState } from '../slices/reminders/state.ts';
import { EMPTY_RUNS, type RunsState } from '../slices/runs/state.ts';
import { EMPTY_STALLS, type StallsState } from '../slices/stalls/state.ts';
import { EMPTY_STEPS, type StepsState } from '../slices/steps/state.ts';
import { EMPTY_SUSPENSION, type SuspensionState } from '../slices/suspension/state.ts';
import { type CommandMemory, EMPTY_COMMAND_MEMORY } from './command-memory.ts';
import { emptyPlace, type PlaceState } from './journal-place.ts';

/** The context. Snake case, because snapshots contain it as data. */
export interface SessionContext
  extends PlaceState,
    CommandMemory,
    RunsState,
    CallsState,
    ApprovalsState,
    HooksState,
    InjectionsState,
    RemindersState,
    CompactionState,
    BudgetsState,
    StepsState,
    HandoffState,
    ChildrenState,
    SuspensionState,
    StallsState {}

/** The context before a session's first record. */
export function emptyContext(sessionId: string): SessionContext {
  return contextWith(EMPTY, { session_id: sessionId });
}

/** A copy of a context with some members changed. */
export function contextWith(context: SessionContext, change: Partial<SessionContext>): SessionContext {
  return Object.assign(copyContext(context), change);
}

/**
 * A copy of a context. Its members are writable, so that the caller can change the copy before others see it.
 *
 * Every member is spelled out because of how V8 (as of Node 20) copies. With a spread, `Object.assign` or a loop over
 * the members of the slices, a copy takes forty times as long, which is half of the cost of an event. Each copy of a
 * copy would also get a hidden class of its own. The return type demands every member.
 */
export function copyContext(context: SessionContext): { -readonly [M in keyof SessionContext]: SessionContext[M] } {
  return {
    session_id: context.session_id,
    n: context.n,
    next_effect: context.next_effect,
    at_ms: context.at_ms,
    epoch: context.epoch,
    run: context.run,
    run_started: context.run_started,
    settings: context.settings,
    pinned: context.pinned,
    tools: context.tools,
    hooks: context.hooks,
    remembered: context.remembered,
    persona_rules: context.persona_rules,
    prompt: context.prompt,
    turn: context.turn,
    turn_open: context.turn_open,
    turns_counted: context.turns_counted,
    turn_usage: context.turn_usage,
    run_usage: context.run_usage,
    total_usage: context.total_usage,
    turn_cost: context.turn_cost,
    run_cost: context.run_cost,
    total_cost: context.total_cost,
    count: context.count,
    clock_watch: context.clock_watch,
    batch_open: context.batch_open,
    calls: context.calls,
    edited: context.edited,
    dispatch_skipped: context.dispatch_skipped,
    preempting: context.preempting,
    cut_short: context.cut_short,
    delivered_at_end: context.delivered_at_end,
    pending: context.pending,
    unheard: context.unheard,
    followups: context.followups,
    delivering: context.delivering,
    delivering_seam: context.delivering_seam,
    reminders: context.reminders,
    feedback: context.feedback,
    delivering_feedback: context.delivering_feedback,
    feedback_count: context.feedback_count,
    feedback_dropped: context.feedback_dropped,
    stall: context.stall,
    skipping: context.skipping,
    view: context.view,
    compaction: context.compaction,
    overflows: context.overflows,
    provision: context.provision,
    repins: context.repins,
    model: context.model,
    persona_wait: context.persona_wait,
    lost_steps: context.lost_steps,
    compacting: context.compacting,
    closing: context.closing,
    consult: context.consult,
    announcements: context.announcements,
    jobs: context.jobs,
    stop_check: context.stop_check,
    stop_checked: context.stop_checked,
    stop_held: context.stop_held,
    aborting: context.aborting,
    stop_reason: context.stop_reason,
    cancel_reason: context.cancel_reason,
    cancel_actor: context.cancel_actor,
    failure: context.failure,
    failed_at: context.failed_at,
    step: context.step,
    output: context.output,
    relay: context.relay,
    suspend: context.suspend,
    suspension: context.suspension,
    signals: context.signals,
    idle_timer: context.idle_timer,
    waking: context.waking,
    parent: context.parent,
    children: context.children,
    spent_by_children: context.spent_by_children,
    hops: context.hops,
    notice: context.notice,
    command_ids: context.command_ids,
  };
}

// Composed once: V8 needs 150 microseconds for these spreads, a thousand times as long as for a copy.
const EMPTY: SessionContext = {
  ...emptyPlace(''),
  ...EMPTY_COMMAND_MEMORY,
  ...EMPTY_RUNS,
  ...EMPTY_CALLS,
  ...EMPTY_APPROVALS,
  ...EMPTY_HOOKS,
  ...EMPTY_INJECTIONS,
  ...EMPTY_REMINDERS,
  ...EMPTY_COMPACTION,
  ...EMPTY_BUDGETS,
  ...EMPTY_STEPS,
  ...EMPTY_HANDOFF,
  ...EMPTY_CHILDREN,
  ...EMPTY_SUSPENSION,
  ...EMPTY_STALLS,
};
