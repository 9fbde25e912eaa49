/**
 * Outcomes of calls, from an effect of the host or as a durable command. When the host reports an outcome as unknown:
 * `sendCall`; the text that the model then reads: `unknownOutcome` (both run-tool-call.ts in libs/session).
 * One call that may have run has the status `error`: an idempotent one that no process accepts any longer
 * (`noLongerServed`, run-tool-call.ts). Its text says that it may have taken effect.
 *
 * Calls that outlive their request: a worker accepts a call of a `long_running` tool (`call_accepted`), and sends its
 * outcome later as a durable command (`call_outcome`). Meanwhile no effect is open for the call, unless it must stop.
 * So a restart of the host neither sends the call again nor ends it.
 *
 * Files edited by calls: file_edited hooks get them after the last seam of the batch, or in the teardown if the run
 * ends before (the two states `file_edited` in machine/chart.ts).
 */

import { BOUNDS, type CallAccepted, type CallOutcome } from '@coxswain/protocol';
import type { Command } from '../../core/commands.ts';
import type { SessionContext } from '../../core/context.ts';
import { type Decision, events, late, reject } from '../../core/decision.ts';
import { isEnded, type MachineState } from '../../machine/state.ts';
import { buildUnknownRequest, mustAskAboutUnknown } from '../approvals/approvals.ts';
import { hooksFor } from '../hooks/consult.ts';
import { suspendRequestOfCall } from '../suspension/requests.ts';
import { resultAfterCancel, settleCancelled } from './cancel.ts';
import type { KnownTool } from './state.ts';
import { callRow } from './table.ts';

/**
 * Decides the outcome of a call, by the first case that applies:
 * - The call is not running with the effect id of the outcome: the outcome is late, and ignored.
 * - The call was cancelled: `settleCancelled` (cancel.ts).
 * - The run is aborting, or a preempting interrupt has ended the call: it ends as `interrupted` if that is the outcome,
 *   and as `cancelled` otherwise, also if the tool succeeded. No hook and no person checks it.
 * - The outcome is unknown, and a person must decide about it: an approval request.
 * - PostToolUse hooks must check the result: `call_returned`.
 * - Otherwise the outcome ends the call, and can then request a suspension (`park`).
 */
export function decideCall(context: SessionContext, outcome: CallOutcome): Decision {
  const row = callRow(context, outcome.call_id);
  if (row?.status !== 'running' || row.effect_id !== outcome.effect_id) return late(outcome.effect_id);
  if (row.cancel) return events(...settleCancelled(context, row, outcome));
  const { duration_ms } = outcome;
  const head = { type: 'call_ended', call_id: row.call_id, tool: row.tool, duration_ms } as const;
  const timedOut = outcome.timed_out ? { timed_out: true as const } : {};
  if (context.aborting || row.preempted) {
    return events({
      ...head,
      status: outcome.status === 'interrupted' ? 'interrupted' : 'cancelled',
      result: resultAfterCancel(context, row, outcome),
      is_error: true,
      ...timedOut,
    });
  }
  if (outcome.status === 'interrupted' && mustAskAboutUnknown(context, row))
    return events(buildUnknownRequest(context, row));
  // This session did not cancel the call. So a `cancelled` of a worker (the command `call_outcome`), or of a host that
  // gave up the effect (`stoppedOutcome`), is recorded as `error`. The `cancelled` of a child is kept, because a child
  // can be cancelled in its own session. For a tool that stops by itself during its request, `checkedOutcome`
  // (run-tool-call.ts) reports `interrupted`.
  const isOfChild = context.children.some(({ effect_id }) => effect_id === outcome.effect_id);
  const failsAsCancelled = outcome.status === 'cancelled' && !isOfChild;
  const { status, result } = agreeing(failsAsCancelled ? { ...outcome, status: 'error' } : outcome);
  if (hooksFor(context, 'PostToolUse', row.tool).length > 0) {
    const park = outcome.park ? { park: outcome.park } : {};
    return events({ type: 'call_returned', call_id: row.call_id, status, result, duration_ms, ...park });
  }
  return events(
    { ...head, status, result, is_error: status !== 'ok', ...timedOut },
    ...suspendRequestOfCall(context, outcome),
  );
}

/**
 * An outcome with a real duration. The duration of an abandoned call (`cancelled`, duration 0) is the time from
 * `call_started` to `atMs`, because no worker has measured it.
 */
export function withRealDuration(context: SessionContext, outcome: CallOutcome, atMs: number): CallOutcome {
  if (outcome.status !== 'cancelled' || outcome.duration_ms > 0) return outcome;
  const startedMs = callRow(context, outcome.call_id)?.started_at_ms ?? atMs;
  return { ...outcome, duration_ms: Math.max(0, atMs - startedMs) };
}

// A tool reports a failure by status or by flag. Either is sufficient.
function agreeing({ status, result }: CallOutcome): Pick<CallOutcome, 'status' | 'result'> {
  const failed = status !== 'ok' || result.is_error;
  return {
    status: status === 'ok' && failed ? 'error' : status,
    result: result.is_error === failed ? result : { ...result, is_error: failed },
  };
}

// The session runs calls of its own tools itself. The outcome of a child comes by the command `child_ended` from the
// child's host, never from a worker.
function mayReportByCommand(tool: KnownTool | undefined): boolean {
  return tool?.long_running === true && !tool.by_session;
}

/** Decides the acceptance of a call: by a worker, or for a child by its stored start command. */
export function decideCallAccepted(context: SessionContext, input: CallAccepted): Decision {
  const row = callRow(context, input.call_id);
  if (row?.status !== 'running' || row.effect_id !== input.effect_id || row.accepted !== undefined) {
    return late(input.effect_id);
  }
  return events({ type: 'call_accepted', call_id: row.call_id, epoch: input.epoch });
}

/**
 * Decides the command `call_outcome`. It is accepted for a running call of a worker's `long_running` tool, from an
 * epoch in which the call may have been sent. Otherwise it is rejected with `call_not_open` or `stale_epoch`.
 */
export function decideCallOutcome(state: MachineState, input: Command<'call_outcome'>): Decision {
  const { context } = state;
  const { call_id, effect_id, epoch, status, result, duration_ms } = input.body;
  const row = isEnded(state) ? undefined : callRow(context, call_id);
  if (row?.status !== 'running' || row.effect_id !== effect_id || !mayReportByCommand(context.tools[row.tool])) {
    const what = row
      ? row.effect_id === effect_id
        ? (row.ended ?? row.status)
        : 'open under another effect id'
      : 'not open';
    return reject(
      input,
      'call_not_open',
      `call ${call_id} does not accept an outcome of effect ${effect_id}: it is ${what}`,
      {
        field: 'call_id',
      },
    );
  }
  // No owner of the session sends an accepted call again. Before the acceptance is known, any owner may have sent it.
  const first = row.accepted ?? row.epoch;
  const last = row.accepted ?? context.epoch;
  if (epoch < first || epoch > last) {
    const sent = first === last ? `epoch ${first}` : `one of the epochs ${first} to ${last}`;
    return reject(
      input,
      'stale_epoch',
      `call ${call_id} was dispatched in ${sent}; this outcome is from epoch ${epoch}`,
      {
        field: 'epoch',
      },
    );
  }
  const decision = decideCall(context, { type: 'call_outcome', call_id, effect_id, status, result, duration_ms });
  if (decision.kind !== 'events') return decision;
  const [ended, ...rest] = decision.events;
  if (ended?.type !== 'call_ended' && ended?.type !== 'call_returned') return decision;
  return events({ ...ended, command_id: input.command_id }, ...rest);
}

/** Adds the edited files to the events of a call's outcome. */
export function withEditedFiles(outcome: CallOutcome, decision: Decision): Decision {
  const { call_id, edited: paths } = outcome;
  if (decision.kind !== 'events' || !paths) return decision;
  return events({ type: 'files_edited', call_id, paths }, ...decision.events);
}

/**
 * The edited files so far, and those of `paths` that file_edited hooks match: sorted, without duplicates, up to the
 * bound.
 */
export function editedFiles(context: SessionContext, paths: readonly string[]): readonly string[] {
  const watched = paths.filter((path) => hooksFor(context, 'file_edited', path).length > 0);
  if (watched.length === 0) return context.edited;
  return [...new Set([...context.edited, ...watched])].sort().slice(0, BOUNDS.editedPathsPerTurnMax);
}
