/**
 * The effects that a session requires now, as data, composed of the effects of each slice.
 */

import { BOUNDS } from '@coxswain/protocol';
import type { MachineState } from '../machine/state.ts';
import { approvalNoticeEffects } from '../slices/approvals/approvals.ts';
import { callEffects } from '../slices/calls/batch.ts';
import { parentReportEffects } from '../slices/children/children.ts';
import { compactionEffects } from '../slices/compaction/compaction.ts';
import { isReprovisioning } from '../slices/copies/copies.ts';
import { consultEffects } from '../slices/hooks/consult-outcome.ts';
import { closingEffects } from '../slices/runs/ending.ts';
import { modelEffects } from '../slices/runs/model-answers.ts';
import { provisionEffects } from '../slices/runs/provision.ts';
import { stopCheckEffects } from '../slices/runs/stop-conditions.ts';
import type { SessionContext } from './context.ts';
import type { AbortOrder, Effect } from './effect.ts';
import { awaitedTimers } from './timers.ts';

/** All required effects: the work, in the order in which the host starts it, then the timers. Pure. */
export function effectsOf(state: MachineState): readonly Effect[] {
  const { context } = state;
  const abort = runAbort(context);
  // While persona, model or mode are resolved again, model calls, compactions, tool calls, hooks and stop predicates
  // wait. In an aborting run they are listed, so that they get the order to abort.
  const waits = isReprovisioning(context) && !abort;
  return [
    ...provisionEffects(context, abort),
    ...(waits ? [] : workEffects(context, abort)),
    ...parentReportEffects(context),
    ...closingEffects(context),
    ...approvalNoticeEffects(context),
    ...awaitedTimers(state),
  ];
}

function workEffects(context: SessionContext, abort: AbortOrder | null): readonly Effect[] {
  return [
    ...modelEffects(context, abort),
    ...compactionEffects(context, abort),
    ...callEffects(context, abort),
    ...consultEffects(context, abort),
    ...stopCheckEffects(context, abort),
  ];
}

/**
 * The order to abort the open work of a run that was cancelled, has failed or has used up a budget; otherwise null. The
 * teardown waits until this work has ended (state `unwinding`, guard `is_quiet`). The work has the time `abortGraceMs`.
 * A call that was cancelled before the abort has the timeout of that cancel instead; a cancel after the abort does not
 * change its time (`callEffects`, calls/batch.ts). For a child, the time starts when the cancel is in the child's
 * inbox. A child that still starts is cancelled after its start command is stored.
 */
function runAbort({ aborting, cancel_reason, failure }: SessionContext): AbortOrder | null {
  if (!aborting) return null;
  return { reason: cancel_reason ?? failure?.message ?? 'the run is ending', graceMs: BOUNDS.abortGraceMs };
}

/** The ids of the required effects ({@link effectsOf}): the member `effects_open` of a record. */
export function openEffectIds(state: MachineState): string[] {
  return effectsOf(state).map((effect) => effect.id);
}
