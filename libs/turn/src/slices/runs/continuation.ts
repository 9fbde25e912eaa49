/**
 * Predicates about work that calls for another turn, and about effects that the teardown waits for. What follows a turn is
 * decided by the guards of `turn_end` and of the state `resuming`, in their order (machine/chart.ts): for example `goes_on`
 * or `followup_waits`. The next run, which a late message starts: `runOfLateMessage` (prompts.ts).
 */
import type { SessionContext } from '../../core/context.ts';
import { uncoveredAnswer } from '../budgets/budgets.ts';
import { isInFlight } from '../calls/table.ts';
import { pendingContinuesRun } from '../injections/waiting.ts';
import { stepHasEnded, stepsAreLeft } from '../steps/progress.ts';
import { needsRepair } from './output.ts';

/**
 * Whether queued messages, steps that are left, or the message about an ended suspension or idle interval call for another
 * turn. It does not check max_turns. A queued steer or reminder counts even if it came after the last seam of the turn. But for
 * such a message alone only a daemon takes another turn; any other run ends without it.
 */
export function queuedWorkContinuesRun(context: SessionContext): boolean {
  return (
    context.followups.length > 0 ||
    context.waking?.takes_turn === true ||
    stepsAreLeft(context) ||
    pendingContinuesRun(context)
  );
}

/**
 * Whether the open turn is the last one that max_turns allows: that of the persona, since the last hand-off, or that of the
 * whole run (`run_limits`).
 */
export function isAtLastTurn(context: SessionContext): boolean {
  const { turns_counted, pinned, relay } = context;
  const whole = pinned?.run_limits?.max_turns ?? Number.POSITIVE_INFINITY;
  return turns_counted - (relay.since?.turns ?? 0) >= (pinned?.max_turns ?? 1) || turns_counted >= whole;
}

/** Whether the open turn is the last one, by max_turns or because a budget does not cover another answer. */
export function isCapped(context: SessionContext): boolean {
  return isAtLastTurn(context) || uncoveredAnswer(context) !== null;
}

/**
 * Whether the open turn itself continues the run: the guard `goes_on` of `turn_end`. max_turns is not checked. A steer
 * that the last seam of the turn delivered counts: `iteration_end` and `post_tool_dispatch` set `delivered_at_end`. A steer
 * after that seam does not count: it stays in `pending` for the next turn, or for the next run if the run ends with this turn.
 * In a turn in which a step has ended, calls and a cut-short answer do not count; steps that are left do. An output that
 * needs a repair always counts.
 */
export function openTurnContinuesRun(context: SessionContext): boolean {
  const { batch_open, cut_short, delivered_at_end } = context;
  if (stepHasEnded(context)) return delivered_at_end > 0 || stepsAreLeft(context) || needsRepair(context);
  return batch_open || cut_short || delivered_at_end > 0 || needsRepair(context);
}

/**
 * Whether the open turn or queued work ({@link queuedWorkContinuesRun}) calls for another turn, within max_turns. Only then
 * `closeTurn` (turns.ts) records a budget that does not cover the answer. No guard calls it.
 */
export function continuesWithinMaxTurns(context: SessionContext): boolean {
  return !isAtLastTurn(context) && (openTurnContinuesRun(context) || queuedWorkContinuesRun(context));
}

/**
 * Whether effects are open that the teardown waits for at its start. Timers, notifications, tool connections and the
 * report to the parent do not count.
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
