/**
 * The effects of passed seams and delivered messages on the context: a dispatch table over the slices.
 */

import type { SeamKind } from '@coxswain/protocol';
import { clockStarted } from '../slices/budgets/spending.ts';
import { batchSkipped } from '../slices/calls/transitions.ts';
import { passDue } from '../slices/compaction/compaction.ts';
import { HANDOFF_SEAM } from '../slices/handoff/handoff.ts';
import { isHooked } from '../slices/hooks/registrations.ts';
import { feedbackDelivered, feedbackTaken } from '../slices/injections/feedback.ts';
import { followupDelivered, steeringDelivered } from '../slices/injections/seams.ts';
import { showReminders } from '../slices/reminders/reminders.ts';
import { modelAsked } from '../slices/runs/answers.ts';
import { closingAsked } from '../slices/runs/ending.ts';
import { OUTPUT_SEAM } from '../slices/runs/output.ts';
import { STEP_SEAM } from '../slices/steps/progress.ts';
import { stepTaskDelivered } from '../slices/steps/steps.ts';
import { jobEnded, wakingMessageDelivered } from '../slices/suspension/suspension.ts';
import type { SessionContext } from './context.ts';
import type { Placed } from './place.ts';

type Change = Partial<SessionContext>;

/** Applies the pass of a seam. */
export function seamPassed(context: SessionContext, event: Placed<'loop_checkpoint'>): Change {
  return PASSED_SEAMS[event.kind]?.(context, event) ?? {};
}

/** Effects of a passed seam in addition to delivery. Other seams have none. */
const PASSED_SEAMS: {
  readonly [kind in SeamKind]?: (context: SessionContext, event: Placed<'loop_checkpoint'>) => Change;
} = {
  pre_tool_dispatch: batchSkipped,
  post_tool_dispatch: (_, event) => ({ delivered_at_end: event.delivered_ids.length }),
  iteration_end: (_, event) => ({ delivered_at_end: event.delivered_ids.length }),
  pre_compact: (context, event) => ({ pass: passDue(context), ...feedbackTaken(context, event) }),
  post_compact: (context, event) => ({
    pass: null,
    reminders: showReminders(context.reminders),
    ...feedbackTaken(context, event),
    ...(isHooked(context, 'transform_context') ? {} : modelAsked(context, event)),
  }),
  daemon_idle_pre: jobEnded,
  daemon_idle_post: (context, event) => ({ idle_timer: null, ...clockStarted(context, event) }),
  loop_exit: (context, event) => (context.run_started && context.pinned ? closingAsked(context, event) : {}),
};

/** Applies a message in the transcript, by its seam, then by its origin. */
export function messageInjected(context: SessionContext, event: Placed<'message_injected'>): Change {
  if (event.seam === STEP_SEAM) return stepTaskDelivered(context);
  if (event.seam === OUTPUT_SEAM) return {};
  if (event.seam === HANDOFF_SEAM) return { relay: { ...context.relay, owes: null } };
  switch (event.origin) {
    case 'direct':
      return wakingMessageDelivered(context, event);
    case 'feedback':
      return feedbackDelivered(context, event.command_id);
    case 'followup':
      return { ...followupDelivered(context, event), step: null, relay: { ...context.relay, count: 0 } };
    default:
      return steeringDelivered(context, event);
  }
}
