/** How a call ends that someone cancelled: its result, the answer to who asked, and what the model reads. */
import type { CallOutcome, SessionEvent, ToolResult } from '@coxswain/protocol';
import { cancellerOf, nameOf } from './canceller.ts';
import type { CallCancel, CallRow, SessionContext } from './context.ts';
import { because } from './decision.ts';
import * as q from './queries.ts';

/** The events that settle a call with an open cancel request, once the outside world has let go of it. */
export function settleCancelled(
  context: SessionContext,
  row: CallRow,
  outcome: Pick<CallOutcome, 'status' | 'result' | 'duration_ms' | 'timed_out'>,
): SessionEvent[] {
  if (!row.cancel) return [];
  const { command_id, reason, actor, inject_reminder } = row.cancel;
  return [
    {
      type: 'call_ended',
      call_id: row.call_id,
      tool: row.tool,
      status: 'cancelled',
      result: resultAfterCancel(context, row, outcome),
      is_error: true,
      duration_ms: outcome.duration_ms,
      ...(outcome.timed_out ? { timed_out: true } : {}),
    },
    {
      type: 'control_outcome',
      control: 'cancel_call',
      command_id,
      status: outcome.timed_out ? 'timeout' : 'cancelled',
      target: row.call_id,
      tool: row.tool,
      ...(actor ? { actor } : {}),
      ...(reason === undefined ? {} : { reason }),
    },
    ...(inject_reminder ? [cancelReminder(context, row, row.cancel)] : []),
  ];
}

/**
 * The result says who stopped the call and why, and what the tool had answered by then, unless hooks were to see that
 * first: what may have to be kept back is not shown because someone was in a hurry.
 */
export function resultAfterCancel(
  context: SessionContext,
  row: CallRow,
  outcome: Pick<CallOutcome, 'status' | 'result' | 'timed_out'>,
): ToolResult {
  const { who, reason } = cancellerOf(context, row);
  const mayStillRun = outcome.timed_out
    ? ' The tool did not stop in time, so the outcome of this tool call is unknown.'
    : '';
  const note = { type: 'text' as const, text: `Cancelled by ${who}${because(reason)}.${mayStillRun}` };
  const answered = outcome.status === 'ok' || outcome.status === 'error';
  const isShown = answered && q.hooksFor(context, 'PostToolUse', row.tool).length === 0;
  // That nobody knows whether it took effect is the host's own word.
  return isShown || outcome.status === 'interrupted'
    ? { ...outcome.result, is_error: true, content: [note, ...outcome.result.content] }
    : { content: [note], is_error: true };
}

/** The reminder that tells the model, in addition to the result, that the tool did not fail by itself. */
export function cancelReminder(
  context: SessionContext,
  { call_id, tool }: CallRow,
  { command_id, actor, reason }: Pick<CallCancel, 'command_id' | 'actor' | 'reason'>,
): SessionEvent {
  const text = `Tool call ${call_id} (${tool}) was cancelled by ${nameOf(actor)}${because(reason)}. The tool itself did not fail.`;
  return {
    type: 'message_injected',
    command_id,
    origin: 'direct',
    seam: 'direct',
    turn: context.turn,
    message: { role: 'reminder', content: [{ type: 'text', text }] },
  };
}
