/**
 * Predicates about work that calls for another turn, and about effects that the teardown waits for. What follows a turn
 * is decided by the guards of `turn_end` and of the state `resuming`, in their order (machine/chart.ts): for example
 * `turn_continues_run` or `followup_waits`. The next run, which a late message starts: `runOfLateMessage`
 * (run-starts.ts).
 */
import type { SessionContext } from '../../core/context.ts';
import { uncoveredAnswer } from '../budgets/budgets.ts';
import { isInFlight } from '../calls/table.ts';
import { pendingContinuesRun } from '../injections/waiting.ts';
import { stepHasEnded, stepsAreLeft } from '../steps/progress.ts';
import { needsRepair } from './output.ts';

/**
 * Whether work is queued that needs a turn: a follow-up, a steer or reminder (unless its mode is `audit_only`), a step
 * that is left, or the message about an ended suspension or idle interval. Messages that await the verdict of hooks count.
 *
 * It does not decide that the run continues: the guards also check max_turns, budgets and stop conditions. A steer or
 * reminder that arrived after the last seam of the turn gets a turn in this run or not, by the state:
 * - `turn_end`, without other work: the run ends, and the message stays queued for the next run.
 * - `turn_end` of a daemon, without other work: the daemon continues with a turn for the message.
 * - `resuming`, for example after a suspension: every run continues with a turn for it (`has_work`, machine/guards.ts).
 */
export function hasQueuedWork(context: SessionContext): boolean {
  return (
    context.followups.length > 0 ||
    context.waking?.takes_turn === true ||
    stepsAreLeft(context) ||
    pendingContinuesRun(context)
  );
}

/**
 * Whether the newest turn is the last one that max_turns allows: the max_turns of the persona, counted from the last
 * hand-off, or the max_turns of the whole run (`run_limits`).
 */
export function isAtLastTurn(context: SessionContext): boolean {
  const { turns_counted, pinned, relay } = context;
  const whole = pinned?.run_limits?.max_turns ?? Number.POSITIVE_INFINITY;
  return turns_counted - (relay.since?.turns ?? 0) >= (pinned?.max_turns ?? 1) || turns_counted >= whole;
}

/** Whether the newest turn is the last one, by max_turns or because a budget does not cover another answer. */
export function isCapped(context: SessionContext): boolean {
  return isAtLastTurn(context) || uncoveredAnswer(context) !== null;
}

/**
 * Whether the newest turn itself continues the run: the guard `turn_continues_run` of `turn_end`. It does not check
 * max_turns. The turn continues the run if one of these is true:
 * - It has calls, or an interrupt cut its answer short. If a step has ended in the turn, this does not count; instead
 *   it counts that steps are left.
 * - Its last seam (`iteration_end` or `post_tool_dispatch`) delivered a message: `delivered_at_end`. A message that
 *   arrived later stays in `pending`, for the next turn, or for the next run if this run ends.
 * - Its output needs a repair.
 */
export function openTurnContinuesRun(context: SessionContext): boolean {
  const { batch_open, cut_short, delivered_at_end } = context;
  if (stepHasEnded(context)) return delivered_at_end > 0 || stepsAreLeft(context) || needsRepair(context);
  return batch_open || cut_short || delivered_at_end > 0 || needsRepair(context);
}

/**
 * Whether the open turn or queued work ({@link hasQueuedWork}) calls for another turn, within max_turns. Only
 * then can `closeTurn` (turns.ts) record that a budget does not cover another answer.
 */
export function continuesWithinMaxTurns(context: SessionContext): boolean {
  return !isAtLastTurn(context) && (openTurnContinuesRun(context) || hasQueuedWork(context));
}

/**
 * Whether effects are open that must end before the teardown continues (`unwinding`). Timers, notifications of approvals,
 * the closing of the tools and the report to the parent do not count.
 */
export function anythingInFlight(context: SessionContext): boolean {
  return (
    context.model !== null ||
    context.compacting !== null ||
    context.provision !== null ||
    context.consult !== null ||
    context.stop_check !== null ||
    context.calls.some(isInFlight)
  );
}
