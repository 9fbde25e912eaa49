/**
 * The command `cancel_call`, and the results of cancelled calls: the canceller, the text for the model, and the outcome for
 * the sender of the cancel. The cancel of a run: `decideCancel` (runs/ending.ts). Which calls get an abort order:
 * `callEffects` (batch.ts).
 */
import type { Actor, CallOutcome, SessionEvent, ToolResult } from '@coxswain/protocol';
import type { Command } from '../../core/commands.ts';
import type { SessionContext } from '../../core/context.ts';
import { actorMember, controlOutcome, type Decision, events, reasonMember, reasonSuffix } from '../../core/decision.ts';
import type { AbortOrder } from '../../core/effect.ts';
import { isEnded, type MachineState } from '../../machine/state.ts';
import { hooksFor } from '../hooks/consult.ts';
import { PREEMPT_REASON } from '../injections/preempt.ts';
import { buildCallEnded } from './results.ts';
import type { CallAt, CallCancel, CallRow, ReturnedOutcome } from './state.ts';
import { callRow } from './table.ts';

/** The canceller, as the object of "Cancelled by", and the reason, if known. */
export interface Canceller {
  readonly who: string;
  readonly reason: string | undefined;
}

/** How a cancelled call has ended: by its outcome, or with the result that hooks were checking. */
type StoppedCall = Omit<ReturnedOutcome, 'park'> & Pick<CallOutcome, 'timed_out'>;

/** The name of a sender, or `an unnamed sender`: commands on the bus need not name their sender. */
export function nameOf(actor: Actor | null | undefined): string {
  return actor?.name ?? 'an unnamed sender';
}

/** The canceller of the run: the sender of its cancel; or the host, for a used-up budget or a failure. */
function runCancellerOf(context: SessionContext): Canceller {
  const { stop_reason, cancel_actor, cancel_reason, failure } = context;
  const isCancelled = stop_reason === 'cancelled';
  const who = isCancelled ? nameOf(cancel_actor) : 'the host';
  return { who: `${who}, with the run`, reason: cancel_reason ?? (isCancelled ? undefined : failure?.message) };
}

/**
 * The canceller of a call: the sender of its cancel, of the run's cancel, or of the preempting interrupt; or the host.
 */
export function cancellerOf(context: SessionContext, { cancel, preempted }: CallAt<'running' | 'returned'>): Canceller {
  if (cancel) return { who: nameOf(cancel.actor), reason: cancel.reason };
  if (!context.aborting && preempted) return { who: nameOf(preempted.actor), reason: PREEMPT_REASON };
  return runCancellerOf(context);
}

/**
 * The text in place of the output of a call that was cancelled after its tool had run, and before PostToolUse hooks had
 * checked the output. The hooks might have withheld the output.
 */
export function uncheckedText({ who, reason }: Canceller): string {
  return `Cancelled by ${who} after the tool had run${reasonSuffix(reason)}. The result is withheld because hooks had not checked it.`;
}

const unrunText = (row: CallAt<'proposed' | 'parked' | 'allowed'>, { who, reason }: Canceller) =>
  row.in_doubt
    ? `Cancelled by ${who}${reasonSuffix(reason)}. The outcome of this tool call is unknown: an earlier host ended while the call ran.`
    : `Cancelled by ${who} before it was run${reasonSuffix(reason)}.`;

/**
 * Decides `cancel_call`. It is never rejected. The outcome is `already_cancelled` if a cancel of the call is open, or
 * if the call has ended as `cancelled`, for whatever cause. The outcome is `not_found` if the newest batch has no such
 * call, if the call has ended otherwise, and after the end of the run. A call in flight must stop first; if hooks are
 * checking its result, their consult must end first. Any other open call ends at once.
 */
export function decideCancelCall(state: MachineState, input: Command<'cancel_call'>): Decision {
  const { context } = state;
  const { call_id: callId, reason, inject_reminder: injects, timeout_ms } = input.body;
  const row = isEnded(state) ? undefined : callRow(context, callId);
  const outcome = (status: 'cancelled' | 'already_cancelled' | 'not_found', cause?: string): SessionEvent => ({
    ...controlOutcome(context.session_id, input, status),
    ...(row ? { tool: row.tool } : {}),
    ...reasonMember(cause),
  });
  if (!row) return events(outcome('not_found'));
  if (row.cancel) return events(outcome('already_cancelled', row.cancel.reason));
  if (row.status === 'ended') return events(outcome(row.ended === 'cancelled' ? 'already_cancelled' : 'not_found'));
  const isBeingChecked = row.status === 'returned' && context.consult?.call_id === callId;
  if (row.status === 'running' || isBeingChecked) {
    return events({
      type: 'call_cancel_requested',
      call_id: callId,
      command_id: input.command_id,
      ...reasonMember(reason),
      ...actorMember(input),
      inject_reminder: injects,
      timeout_ms,
    });
  }
  const canceller = { who: nameOf(input.actor), reason };
  return events(
    ...(row.status === 'parked'
      ? [{ type: 'approval_decided', call_id: callId, decision: 'superseded' } as const]
      : []),
    buildCallEnded(row, 'cancelled', row.status === 'returned' ? uncheckedText(canceller) : unrunText(row, canceller)),
    outcome('cancelled', reason),
    ...(injects ? [cancelReminder(context, row, { command_id: input.command_id, actor: input.actor, reason })] : []),
  );
}

/**
 * The events that end a call with an open cancel request; none without one. Either its effect has ended, or the grace
 * period is over, or the consult of PostToolUse hooks about its result has ended.
 */
export function settleCancelled(
  context: SessionContext,
  row: CallAt<'running' | 'returned'>,
  outcome: StoppedCall,
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
 * The result of a call that was cancelled, also with its run or by a preempting interrupt. It names the canceller and,
 * if known, the reason. If the tool ended by itself, the result contains the tool's output; but if PostToolUse hooks
 * apply to the tool, it is {@link uncheckedText} alone.
 */
export function resultAfterCancel(
  context: SessionContext,
  row: CallAt<'running' | 'returned'>,
  outcome: Omit<StoppedCall, 'duration_ms'>,
): ToolResult {
  const canceller = cancellerOf(context, row);
  const answered = outcome.status === 'ok' || outcome.status === 'error';
  const isChecked = row.status === 'returned' || hooksFor(context, 'PostToolUse', row.tool).length > 0;
  if (answered && isChecked) return { content: [{ type: 'text', text: uncheckedText(canceller) }], is_error: true };
  const mayStillRun = outcome.timed_out
    ? ' The tool did not confirm that it stopped, so the outcome of this tool call is unknown.'
    : '';
  const note = {
    type: 'text' as const,
    text: `Cancelled by ${canceller.who}${reasonSuffix(canceller.reason)}.${mayStillRun}`,
  };
  // In an `interrupted` outcome the result is the host's own text: the outcome of the call is unknown.
  return answered || outcome.status === 'interrupted'
    ? { ...outcome.result, is_error: true, content: [note, ...outcome.result.content] }
    : { content: [note], is_error: true };
}

/** The reminder for the model, in addition to the result, that the tool did not fail by itself. */
function cancelReminder(
  context: SessionContext,
  { call_id, tool }: CallRow,
  { command_id, actor, reason }: Pick<CallCancel, 'command_id' | 'actor' | 'reason'>,
): SessionEvent {
  const text = `Tool call ${call_id} (${tool}) was cancelled by ${nameOf(actor)}${reasonSuffix(reason)}. The tool itself did not fail.`;
  return {
    type: 'message_injected',
    command_id,
    origin: 'direct',
    seam: 'direct',
    turn: context.turn,
    message: { role: 'reminder', content: [{ type: 'text', text }] },
  };
}

/**
 * The order to abort a call, by a `cancel_call`. The order to abort the work of a run: `runAbort` (core/effects.ts). In
 * libs/session, `EffectTable` (session-work.ts) applies both orders; for a call that a worker has accepted,
 * `SessionWorker.#stopCall`; for a child, `stopChild` (crew-effects.ts).
 */
export function cancelOrder(cancel: CallCancel): AbortOrder {
  return { reason: cancel.reason ?? 'cancelled', graceMs: cancel.timeout_ms };
}
