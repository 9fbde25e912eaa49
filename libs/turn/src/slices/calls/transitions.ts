/** What events do to the call table. */
import type { CallPart, EventOf } from '@coxswain/protocol';
import { remember, rememberSource } from '../../core/command-memory.ts';
import type { SessionContext } from '../../core/context.ts';
import { nextIndex, type Placed } from '../../core/place.ts';
import { watchResult } from '../stalls/stalls.ts';
import type { CallRow } from './state.ts';
import { callRow, setCall } from './table.ts';

/** The rows of a new batch, as the model has asked for it. */
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

/** A checkpoint has skipped the calls that had not started. */
export function batchSkipped(_context: SessionContext, event: EventOf<'loop_checkpoint'>): Partial<SessionContext> {
  return event.dispatch_skipped ? { dispatch_skipped: true, skipping: event.skipped_call_ids ?? [] } : {};
}

/** A call runs. */
export function callStarted(context: SessionContext, event: Placed<'call_started'>): Partial<SessionContext> {
  return {
    ...setCall(context, event.call_id, {
      status: 'running',
      effect_id: event.effect_id,
      epoch: context.epoch,
      started_at_ms: event.at_ms,
      in_doubt: undefined,
    }),
    next_effect: nextIndex(context, event) + 1,
  };
}

/** A call in flight is to be cancelled. */
export function callCancelRequested(
  context: SessionContext,
  event: EventOf<'call_cancel_requested'>,
): Partial<SessionContext> {
  const { command_id, reason, actor, inject_reminder, timeout_ms } = event;
  return {
    ...setCall(context, event.call_id, { cancel: { command_id, reason, actor, inject_reminder, timeout_ms } }),
    ...remember(context, command_id),
  };
}

/** A call was cancelled before it was sent. A repeated cancel returns the first reason. */
export function unsentCallCancelled(
  context: SessionContext,
  event: EventOf<'control_outcome'>,
): Partial<SessionContext> {
  const row = callRow(context, event.target);
  if (event.status !== 'cancelled' || !row || row.cancel) return {};
  const { command_id, reason, actor } = event;
  return setCall(context, event.target, {
    cancel: { command_id, reason, actor, inject_reminder: false, timeout_ms: 0 },
  });
}

/** Hooks have rewritten the arguments of a call. What the tool said of the old arguments does not hold for the new ones. */
export function callArgsRewritten(
  context: SessionContext,
  { call_id, args, needs_approval }: EventOf<'call_args_rewritten'>,
): Partial<SessionContext> {
  const hadAnswer = callRow(context, call_id)?.needs_approval !== undefined;
  return setCall(context, call_id, { args, ...(needs_approval || hadAnswer ? { needs_approval } : {}) });
}

/** A call has its outcome, and PostToolUse hooks have yet to see it. */
export function callReturned(context: SessionContext, event: EventOf<'call_returned'>): Partial<SessionContext> {
  const { status, result, duration_ms, park } = event;
  return {
    ...setCall(context, event.call_id, {
      status: 'returned',
      returned: { status, result, duration_ms, ...(park ? { park } : {}) },
    }),
    ...rememberSource(context, event),
  };
}

/** A call has its result. */
export function callEnded(context: SessionContext, event: EventOf<'call_ended'>): Partial<SessionContext> {
  const { skipping } = context;
  return {
    ...setCall(context, event.call_id, {
      status: 'ended',
      ended: event.status,
      is_error: event.is_error,
      returned: undefined,
    }),
    ...rememberSource(context, event),
    stall: watchResult(context.stall, event),
    skipping: skipping.length === 0 ? skipping : skipping.filter((id) => id !== event.call_id),
  };
}

/** Hooks have been asked about a call. */
export function callConsulted(
  context: SessionContext,
  callId: string,
  point: EventOf<'consult_ended'>['point'],
): Partial<SessionContext> {
  if (point === 'PreToolUse') return setCall(context, callId, { vetted: true });
  if (point === 'permission_asked') return setCall(context, callId, { asked: true });
  if (point === 'OnHandoffEmitted') return setCall(context, callId, { handoff: 'let' });
  return {};
}
