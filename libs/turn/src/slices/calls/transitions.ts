/**
 * The changes of the context by events of calls. The changes of one row: row-changes.ts. Events of approvals and of
 * children change the call table too: approvals/approvals.ts and children/children.ts. Which event comes next:
 * `nextBatchEvent` (batch.ts).
 */
import type { CallPart, EventOf } from '@coxswain/protocol';
import { noteCommand, noteSourceCommand } from '../../core/command-memory.ts';
import type { SessionContext } from '../../core/context.ts';
import { nextIndex, type Placed } from '../../core/journal-place.ts';
import { stallAfterResult } from '../stalls/stalls.ts';
import { endRow, noteImmediateCancel, orderCancel, returnRow, startRow } from './row-changes.ts';
import type { CallRow } from './state.ts';
import { callRow, changeCall, noteOnCall } from './table.ts';

/** The rows of a new batch, from the model's answer. */
export function proposedRows(calls: readonly CallPart[]): readonly CallRow[] {
  return calls.map(
    (call): CallRow => ({
      call_id: call.call_id,
      tool: call.tool,
      args: call.args,
      status: 'proposed',
      ...(call.problem ? { problem: call.problem } : {}),
      ...(call.needs_approval ? { needs_approval: true } : {}),
    }),
  );
}

/** A pass of `pre_tool_dispatch` (core/evolve-seams.ts): notes the calls that it skips, if it skips any. */
export function callsSkipped(_context: SessionContext, event: EventOf<'loop_checkpoint'>): Partial<SessionContext> {
  return event.dispatch_skipped ? { dispatch_skipped: true, skipping: event.skipped_call_ids ?? [] } : {};
}

/** A call has started: its effect is requested. */
export function callStarted(context: SessionContext, event: Placed<'call_started'>): Partial<SessionContext> {
  const { epoch } = context;
  return {
    next_effect: nextIndex(context, event) + 1,
    ...changeCall(context, event.call_id, (row) => startRow(row, event, epoch)),
  };
}

/** A cancel was requested: of a call in flight, or of a returned call while PostToolUse hooks check its result. */
export function callCancelRequested(
  context: SessionContext,
  event: EventOf<'call_cancel_requested'>,
): Partial<SessionContext> {
  const { command_id, reason, actor, inject_reminder, timeout_ms } = event;
  const cancel = { command_id, reason, actor, inject_reminder, timeout_ms };
  return {
    ...changeCall(context, event.call_id, (row) => orderCancel(row, cancel)),
    ...noteCommand(context, command_id),
  };
}

/**
 * The outcome of a `cancel_call`. If the command has ended the call at once (`decideCancelCall`, cancel.ts), the row
 * gets the cancel.
 */
export function callCancelledAtOnce(
  context: SessionContext,
  event: EventOf<'control_outcome'>,
): Partial<SessionContext> {
  if (event.status !== 'cancelled') return {};
  const { command_id, reason, actor } = event;
  const cancel = { command_id, reason, actor, inject_reminder: false, timeout_ms: 0 };
  return changeCall(context, event.target, (row) => noteImmediateCancel(row, cancel));
}

/**
 * A hook rewrote the arguments of a call. Whether the tool requires an approval depends on the arguments, so the last
 * rewrite of a consult has the answer for the new ones.
 */
export function callArgsRewritten(
  context: SessionContext,
  { call_id, args, needs_approval }: EventOf<'call_args_rewritten'>,
): Partial<SessionContext> {
  const hadAnswer = callRow(context, call_id)?.needs_approval !== undefined;
  return noteOnCall(context, call_id, { args, ...(needs_approval || hadAnswer ? { needs_approval } : {}) });
}

/** A call has its outcome, and PostToolUse hooks must check it. */
export function callReturned(context: SessionContext, event: EventOf<'call_returned'>): Partial<SessionContext> {
  const { status, result, duration_ms, park } = event;
  const outcome = { status, result, duration_ms, ...(park ? { park } : {}) };
  return {
    ...changeCall(context, event.call_id, (row) => returnRow(row, outcome)),
    ...noteSourceCommand(context, event),
  };
}

/** A call has its result. */
export function callEnded(context: SessionContext, event: EventOf<'call_ended'>): Partial<SessionContext> {
  const { skipping } = context;
  return {
    stall: stallAfterResult(context.stall, event),
    skipping: skipping.length === 0 ? skipping : skipping.filter((id) => id !== event.call_id),
    ...changeCall(context, event.call_id, (row) => endRow(row, event)),
    ...noteSourceCommand(context, event),
  };
}

/** A consult of hooks about a call has ended. */
export function callConsulted(
  context: SessionContext,
  callId: string,
  point: EventOf<'consult_ended'>['point'],
): Partial<SessionContext> {
  if (point === 'PreToolUse') return noteOnCall(context, callId, { vetted: true });
  if (point === 'permission_asked') return noteOnCall(context, callId, { asked: true });
  if (point === 'OnHandoffEmitted') return noteOnCall(context, callId, { handoff: 'let' });
  return {};
}
