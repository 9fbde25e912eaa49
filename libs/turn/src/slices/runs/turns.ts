/** The start and the end of a turn. What follows its end: the guards of `turn_end` (machine/chart.ts). */

import type { SessionEvent } from '@coxswain/protocol';
import type { SessionContext } from '../../core/context.ts';
import type { Placed } from '../../core/journal-place.ts';
import { costMember, uncoveredAnswer } from '../budgets/budgets.ts';
import { feedbackEvent } from '../injections/feedback.ts';
import { countDownAtTurnEnd } from '../reminders/reminders.ts';
import { stallAfterTurn, stallFeedback } from '../stalls/stalls.ts';
import { stepEnd, stepOpening } from '../steps/steps.ts';
import { continuesWithinMaxTurns, isCapped } from './continuation.ts';
import { needsRepair, outputRejection } from './output.ts';
import { isStopped, predicatesAsked } from './stop-conditions.ts';

/**
 * The next event before a turn, or null while announcements are queued (ANNOUNCE-2, hooks/announcements.ts). The order:
 * the start of the next step and its task, feedback of stall detection, `turn_start`.
 */
export function turnOpening(context: SessionContext): SessionEvent | null {
  if (context.announcements.length > 0) return null;
  const step = stepOpening(context);
  if (step) return step;
  const feedback = stallFeedback(context);
  return feedback ? feedbackEvent(context, feedback) : { type: 'turn_start', turn: context.turn + 1 };
}

/** A turn has started. */
export function turnStarted(context: SessionContext, event: Placed<'turn_start'>): Partial<SessionContext> {
  return {
    turn: event.turn,
    turns_counted: context.turns_counted + 1,
    // The model called `park` in the last turn, but a message led to another turn. Other requests stay.
    ...(context.suspend?.call_id === undefined ? {} : { suspend: null }),
  };
}

/** A turn has ended. */
export function turnEnded(context: SessionContext): Partial<SessionContext> {
  const { relay, batch_open } = context;
  return {
    turn_open: false,
    ...(relay.from === null ? {} : { relay: { ...relay, from: null } }),
    reminders: countDownAtTurnEnd(context.reminders),
    ...(batch_open ? { stall: stallAfterTurn(context.stall) } : {}),
  };
}

/** The end of the open turn. */
export function turnEnd(context: SessionContext): SessionEvent {
  return {
    type: 'turn_end',
    turn: context.turn,
    usage: context.turn_usage,
    ...costMember(context, context.turn_cost),
    ...(context.dispatch_skipped ? { dispatch_skipped: true, skip_reason: 'interrupt_immediate' } : {}),
  };
}

/**
 * The next event after the last seam of a turn. In this order:
 * 1. the request to call the stop predicates, if the turn has calls,
 * 2. the end of the open step, if it ends with the turn; or the failure of the run by a failed step (`stepEnd`),
 * 3. the next event about an output that needs a repair (`outputRejection`),
 * 4. if the run would continue (`continuesWithinMaxTurns`) and no stop condition ends it: the event that a budget does
 *    not cover another answer, which ends the run,
 * 5. the end of the turn.
 */
export function closeTurn(context: SessionContext): SessionEvent | null {
  const question = context.batch_open ? predicatesAsked(context) : null;
  if (question) return question;
  const step = stepEnd(context);
  if (step) return step;
  const rejected = needsRepair(context) ? outputRejection(context, isCapped(context)) : null;
  if (rejected) return rejected;
  const uncovered = continuesWithinMaxTurns(context) && !isStopped(context) ? uncoveredAnswer(context) : null;
  return uncovered ?? turnEnd(context);
}
