/**
 * Claims of a session by its next runner, on another host or on the same one, and the limit on restarts of a model call
 * or of the model step of a compaction. In libs/session: `restartBackoffMs` (session-worker.ts) delays the restarts;
 * `EffectTable.reconcile` (session-work.ts) starts the open effects after a claim; `sendCall` (run-tool-call.ts)
 * decides about a tool call that may have run.
 */

import { BOUNDS, type OwnedInput, type SessionEvent } from '@coxswain/protocol';
import type { SessionContext } from '../../core/context.ts';
import { type Decision, events } from '../../core/decision.ts';
import type { Placed } from '../../core/journal-place.ts';
import type { MachineState } from '../../machine/state.ts';
import { setBudgetTimer } from '../budgets/spending.ts';
import { afterFailedSummary } from '../compaction/compaction.ts';
import { decideAfterCopy, ownedAfterCopy } from '../copies/copies.ts';
import { personaWait } from '../steps/persona-waits.ts';

/**
 * Decides a claim. After `modelRestartsMax` restarts, a model call fails the run, and a compaction continues as after a
 * failed model step (`afterFailedSummary`, compaction.ts). This does not apply in an aborting run, nor to a model call
 * that an interrupt has ended, nor to a model step that waits for its persona. The first claim of a copy:
 * `decideAfterCopy` (copies.ts). A claim is ignored if its epoch is not newer.
 */
export function decideOwned(state: MachineState, input: OwnedInput): Decision {
  const { context } = state;
  if (input.epoch <= context.epoch)
    return { kind: 'ignored', reason: `epoch ${input.epoch} is not after ${context.epoch}` };
  if (input.after_copy) return decideAfterCopy(state, input);
  const owned: SessionEvent = { type: 'owned', epoch: input.epoch, host: input.host };
  const { compacting, model, compaction } = context;
  if (personaWait(context)) return events(owned);
  if (compacting && compaction && compacting.restarts + 1 > BOUNDS.modelRestartsMax && !context.aborting) {
    const message = `the summary was restarted ${BOUNDS.modelRestartsMax} times, each time because its host ended`;
    return events(owned, ...afterFailedSummary(context, compaction, { code: 'model_restarts_exhausted', message }));
  }
  if (!model || model.restarts + 1 <= BOUNDS.modelRestartsMax || context.aborting || model.preempted)
    return events(owned);
  const message = `the model call was restarted ${BOUNDS.modelRestartsMax} times, each time because its host ended`;
  return events(owned, {
    type: 'run_failed',
    source: 'model',
    error: { code: 'model_restarts_exhausted', message },
    stop_reason: 'error',
  });
}

/**
 * The next runner owns the session: an open model call or compaction counts a restart, unless it waits for its persona: it has
 * not started, and the wait can outlast many hosts. A copy: `ownedAfterCopy` (copies.ts).
 */
export function sessionOwned(context: SessionContext, event: Placed<'owned'>): Partial<SessionContext> {
  if (event.after_copy) return ownedAfterCopy(context, event, (count) => setBudgetTimer(context, event, count));
  const { model, compacting } = context;
  if (personaWait(context)) return { epoch: event.epoch };
  return {
    epoch: event.epoch,
    ...(model ? { model: { ...model, restarts: model.restarts + 1 } } : {}),
    ...(compacting ? { compacting: { ...compacting, restarts: compacting.restarts + 1 } } : {}),
  };
}
