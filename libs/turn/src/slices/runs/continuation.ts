/** Whether a run takes another turn, and whether anything is in flight. */
import type { SessionContext } from '../../core/context.ts';
import { uncoveredAnswer } from '../budgets/budgets.ts';
import { isInFlight } from '../calls/table.ts';
import { pendingContinuesRun } from '../injections/waiting.ts';
import { stepHasEnded, stepsAreLeft } from '../steps/progress.ts';
import { needsRepair } from './output.ts';

/**
 * Whether queued messages, the message about an ended wait, or steps that are left would continue the run. It does not
 * check max_turns.
 */
export function anythingWaits(context: SessionContext): boolean {
  return (
    context.followups.length > 0 ||
    context.waking?.takes_turn === true ||
    stepsAreLeft(context) ||
    pendingContinuesRun(context)
  );
}

/** Whether the open turn is the last one that max_turns allows. */
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
 * Whether the open turn itself continues the run. It does not check max_turns, and does not count `pending`: a steer after
 * the last seam stays there for the next turn, or for the next run if the turn is the last one.
 */
export function turnGoesOn(context: SessionContext): boolean {
  const { batch_open, cut_short, delivered_at_end } = context;
  if (stepHasEnded(context)) return delivered_at_end > 0 || stepsAreLeft(context) || needsRepair(context);
  return batch_open || cut_short || delivered_at_end > 0 || needsRepair(context);
}

/** Whether the run would continue after its open turn, within max_turns. It does not check budgets. */
export function wouldGoOn(context: SessionContext): boolean {
  return !isAtLastTurn(context) && (turnGoesOn(context) || anythingWaits(context));
}

/** Whether effects of this run are open, except tool connections. */
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
