/**
 * The changes of the context by a passed seam (event `loop_checkpoint`): a dispatch table over the slices. Those by the
 * messages that the seam delivers are separate: `deliveredAt` (injections/seam-passes.ts).
 */

import type { SeamKind } from '@coxswain/protocol';
import { clockStarted } from '../slices/budgets/spending.ts';
import { callsSkipped } from '../slices/calls/transitions.ts';
import { compactionDue } from '../slices/compaction/compaction.ts';
import { isHooked } from '../slices/hooks/consult.ts';
import { feedbackTaken } from '../slices/injections/feedback.ts';
import { showReminders } from '../slices/reminders/reminders.ts';
import { closingOpened } from '../slices/runs/ending.ts';
import { modelCallOpened } from '../slices/runs/model-answers.ts';
import { daemonJobEnded } from '../slices/suspension/daemon.ts';
import type { SessionContext } from './context.ts';
import type { Placed } from './journal-place.ts';

type Change = Partial<SessionContext>;

/** The changes by the pass of a seam, without those of `deliveredAt`. */
export function seamPassed(context: SessionContext, event: Placed<'loop_checkpoint'>): Change {
  return PASSED_SEAMS[event.kind]?.(context, event) ?? {};
}

/** A seam without a row causes no changes but those of `deliveredAt`. */
const PASSED_SEAMS: {
  readonly [kind in SeamKind]?: (context: SessionContext, event: Placed<'loop_checkpoint'>) => Change;
} = {
  pre_tool_dispatch: callsSkipped,
  post_tool_dispatch: (_, event) => ({ delivered_at_end: event.delivered_ids.length }),
  iteration_end: (_, event) => ({ delivered_at_end: event.delivered_ids.length }),
  pre_compact: (context, event) => ({ compaction: compactionDue(context), ...feedbackTaken(context, event) }),
  post_compact: (context, event) => ({
    compaction: null,
    reminders: showReminders(context.reminders),
    ...feedbackTaken(context, event),
    ...(isHooked(context, 'transform_context') ? {} : modelCallOpened(context, event)),
  }),
  daemon_idle_pre: daemonJobEnded,
  daemon_idle_post: (context, event) => ({ idle_timer: null, ...clockStarted(context, event) }),
  loop_exit: (context, event) => (context.run_started && context.pinned ? closingOpened(context, event) : {}),
};
