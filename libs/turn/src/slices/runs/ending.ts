/**
 * The end of a run.
 *
 * The hook points at the end of a run follow each other in a fixed order, each at most once. Their hooks cannot prevent
 * the end: after any answer the next point follows, and finally `agent_end`. Whether a run ends with a turn: the guards
 * of `turn_end` (machine/chart.ts). The run that a late message starts: `runOfLateMessage` (run-starts.ts).
 *
 * The last seam, `loop_exit`, delivers `audit_only` messages. The other queued messages outlive the run, also a
 * cancelled one. `pending` in `agent_end` is their number.
 *
 * Where each limit of a run is decided:
 * - max_turns: `isAtLastTurn` (continuation.ts), for the guards of `turn_end` and `resuming`. The run ends normally, or as
 *   `max_turns` if work is left.
 * - Tokens, money and time: `reachedThreshold` (budgets/budgets.ts), for each next event of a record. At 100 percent the run
 *   aborts (`thresholdReported`, budgets/spending.ts). For time, a timer wakes the session (`nextTimeThresholdMs`).
 * - Tokens and money for another answer: `uncoveredAnswer` (budgets/budgets.ts), at the end of a turn (`closeTurn`,
 *   turns.ts). The run aborts.
 * - Tokens and money of a declared step: `overspent` (steps/steps.ts). The step fails, and its error boundary decides about
 *   the run.
 * - Repairs of an invalid output: `outputRejection` (output.ts). The run fails.
 * - Restarts of a model call or compaction by new owners: `decideOwned` (owners.ts). After a model call the run fails.
 * - The wait for a process that serves the persona: `afterPersonaWaitExpiry` (steps/persona-waits.ts). The open step or the
 *   run fails.
 * - Consecutive hand-offs: `handoffsMax` (handoff/handoff.ts). The hand-off fails, and the run continues.
 * Stop conditions are no limits: `isStopped` (stop-conditions.ts).
 */

import {
  assertNever,
  type EventOf,
  type JsonObject,
  type SessionEvent,
  type SessionFailedInput,
  type StopReason,
} from '@coxswain/protocol';
import type { Command } from '../../core/commands.ts';
import type { SessionContext } from '../../core/context.ts';
import { controlOutcome, type Decision, events, reasonMember, reject } from '../../core/decision.ts';
import type { Effect } from '../../core/effect.ts';
import { openEffect, type Placed } from '../../core/journal-place.ts';
import { isEnded, type MachineState } from '../../machine/state.ts';
import { costMember } from '../budgets/budgets.ts';
import { batchTerminates } from '../calls/table.ts';
import { isHooked, nextConsultEvent } from '../hooks/consult.ts';
import { stepHasEnded } from '../steps/progress.ts';
import { hasQueuedWork, isAtLastTurn, isCapped } from './continuation.ts';
import { needsRepair, outputOfRun } from './output.ts';
import { isStopped } from './stop-conditions.ts';

/** The event `agent_end`; null while announcements are queued (ANNOUNCE-2, hooks/announcements.ts). */
export function endOfRun(context: SessionContext): SessionEvent | null {
  if (context.announcements.length > 0) return null;
  return {
    type: 'agent_end',
    run: context.run,
    stop_reason: stopReason(context),
    turns: context.turn,
    usage: context.run_usage,
    ...costMember(context, context.run_cost),
    pending: context.pending.length + context.followups.length,
    ...(context.failure ? { error: context.failure } : {}),
    ...(context.failed_at === null ? {} : { failed_at: context.failed_at }),
    ...(context.cancel_reason === null ? {} : { reason: context.cancel_reason }),
    ...outputOfRun(context),
  };
}

function stopReason(context: SessionContext): StopReason {
  if (context.stop_reason) return context.stop_reason;
  if (context.batch_open && context.delivered_at_end === 0 && batchTerminates(context)) return 'terminated';
  if (isStopped(context)) return 'stop_condition';
  if (context.batch_open && !stepHasEnded(context)) return reasonOfCap(context);
  return isCapped(context) && (context.cut_short || needsRepair(context) || hasQueuedWork(context))
    ? reasonOfCap(context)
    : 'end_turn';
}

function reasonOfCap(context: SessionContext): StopReason {
  return isAtLastTurn(context) ? 'max_turns' : 'budget_exceeded';
}

/** For a row of `derive` (core/next.ts): the function that returns the next event of the consult of this hook point. */
export function consultEnding(point: EndingPoint): (context: SessionContext) => SessionEvent | null {
  return (context) => nextConsultEvent(context, point, endingPayload(context, point, stopReason(context)));
}

/**
 * Decides `cancel`. Without an active run it is rejected. During a run its outcome is `already_cancelled` if the stop
 * reason of the run is `cancelled`; otherwise it is `cancelled`, also if the run already ends for another reason
 * (`runCancelled`). Work in flight ends first: `runAbort` (core/effects.ts) and the state `unwinding`.
 */
export function decideCancel(state: MachineState, input: Command<'cancel'>): Decision {
  const { context } = state;
  const cancelled = context.stop_reason === 'cancelled';
  if (isEnded(state)) {
    return cancelled
      ? reject(input, 'already_cancelled', 'the run was already cancelled')
      : reject(input, 'not_running', 'the session is not running');
  }
  return events({
    ...controlOutcome(context.session_id, input, cancelled ? 'already_cancelled' : 'cancelled'),
    ...reasonMember(cancelled ? context.cancel_reason : input.body.reason),
  });
}

/** Decides an internal failure of the host: the run fails. Without an active run it is ignored. */
export function decideSessionFailed(state: MachineState, input: SessionFailedInput): Decision {
  if (isEnded(state)) return { kind: 'ignored', reason: 'the run has ended' };
  return events({ type: 'run_failed', source: 'session', error: input.error, stop_reason: 'error' });
}

/** A hook point at the end of a run, in the order of the chart. */
export type EndingPoint = 'session_error' | 'session_end' | 'pre_finish' | 'on_unsettled_detected' | 'post_finish';

/** Whether a point is skipped: no hook is registered for it, or it does not apply. False while a consult is open. */
export function isPointSkipped(context: SessionContext, point: EndingPoint): boolean {
  // An open consult, of this point or of an announcement, ends first, even if the point no longer applies.
  if (context.consult) return false;
  if (!isHooked(context, point)) return true;
  if (point === 'session_error') return context.stop_reason !== 'error';
  if (point === 'on_unsettled_detected') return unsettled(context) === 0;
  return false;
}

/** The members of a point's payload, in addition to `payloadHead` (hooks/consult.ts). */
function endingPayload(context: SessionContext, point: EndingPoint, stopReason: StopReason): JsonObject {
  switch (point) {
    case 'session_error': {
      const { code, message } = context.failure ?? { code: 'session_failed', message: '' };
      return { stop_reason: stopReason, error: { code, message }, failed_at: context.failed_at };
    }
    case 'on_unsettled_detected':
      return { stop_reason: stopReason, unsettled: unsettledPayload(context) };
    case 'session_end':
    case 'pre_finish':
    case 'post_finish':
      return { stop_reason: stopReason };
    default:
      return assertNever(point);
  }
}

// When a run ends, its calls have ended, and no approval is pending. Undelivered messages and open jobs may be left.
function unsettled(context: SessionContext): number {
  return context.pending.length + context.followups.length + context.jobs.length;
}

/** Maximum of undelivered messages that a payload lists. `undelivered` is the number of all. */
const NAMED_MAX = 64;

function unsettledPayload(context: SessionContext): JsonObject {
  const injections = [
    ...context.pending.map(({ command_id, kind }) => ({ command_id, kind })),
    ...context.followups.map(({ command_id }) => ({ command_id, kind: 'followup' })),
  ];
  const jobs = context.jobs.length > 0 ? { open_jobs: context.jobs.map(({ job_id }) => job_id) } : {};
  return { undelivered: injections.length, injections: injections.slice(0, NAMED_MAX), ...jobs };
}

/**
 * The run has failed: no new work may start. An earlier stop reason and an earlier failure are kept. A failure of the model or
 * of the provisioning closes its open effect.
 */
export function runFailed(context: SessionContext, event: Placed<'run_failed'>): Partial<SessionContext> {
  return {
    aborting: true,
    stop_reason: context.stop_reason ?? event.stop_reason,
    failure: context.failure ?? event.error,
    failed_at: context.failed_at ?? event.n,
    ...(event.source === 'provisioning' ? { provision: null } : {}),
    ...(event.source === 'model' ? { model: null } : {}),
  };
}

/**
 * A cancel has an outcome. With `cancelled` the run ends, and the context notes the reason and the sender. If the run
 * already ends, it keeps its stop reason, and nothing changes.
 */
export function runCancelled(context: SessionContext, event: EventOf<'control_outcome'>): Partial<SessionContext> {
  if (event.status !== 'cancelled' || context.aborting) return {};
  return {
    aborting: true,
    stop_reason: 'cancelled',
    cancel_reason: event.reason ?? null,
    cancel_actor: event.actor ?? null,
  };
}

/** The last seam of the run was passed: the effect that closes the tools of the run is requested. */
export function closingOpened(context: SessionContext, event: Placed<'loop_checkpoint'>): Partial<SessionContext> {
  const { effect, next_effect } = openEffect(context, event);
  return { closing: effect, next_effect };
}

/** The effect that closes the tools of the run. */
export function closingEffects({ closing }: SessionContext): readonly Effect[] {
  return closing ? [{ kind: 'close_tools', ...closing, abort: null }] : [];
}
