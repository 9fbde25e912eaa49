/** Queries and changes of the call table. */

import type { JsonObject } from '@coxswain/protocol';
import type { SessionContext } from '../../core/context.ts';
import type { CallAt, CallNotes, CallRow } from './state.ts';

/** The call table with one row changed. */
export function changeCall(
  context: SessionContext,
  callId: string,
  change: (row: CallRow) => CallRow,
): { calls: readonly CallRow[] } {
  return { calls: context.calls.map((row) => (row.call_id === callId ? change(row) : row)) };
}

/** The call table with notes on one row, whatever its status. */
export function noteOnCall(
  context: SessionContext,
  callId: string,
  notes: Partial<CallNotes>,
): { calls: readonly CallRow[] } {
  return changeCall(context, callId, (row) => ({ ...row, ...notes }));
}

/** The row of a call in the newest batch. */
export function callRow(context: SessionContext, callId: string): CallRow | undefined {
  return context.calls.find((row) => row.call_id === callId);
}

/** Rows without a result. */
export function openCalls(context: SessionContext): readonly CallRow[] {
  return context.calls.filter((row) => row.status !== 'ended');
}

/** Whether every call except this one has its result. */
export function allEndedBut(context: SessionContext, callId: string | null): boolean {
  return context.calls.every((row) => row.status === 'ended' || row.call_id === callId);
}

/** Whether a call other than this one waits for a human approval. */
export function anyParkedBut(context: SessionContext, callId: string | null): boolean {
  return context.calls.some((row) => row.status === 'parked' && row.call_id !== callId);
}

/** Whether the call has started (`call_started` is recorded) and has no outcome so far. The host may not have sent it yet. */
export function isInFlight(row: CallRow): boolean {
  return row.status === 'running';
}

/** A call in the form for payloads of hooks. */
export function toolPayload({ tool, args, call_id }: CallRow): JsonObject {
  return { name: tool, args, call_id };
}

/** The tools whose calls the session executes itself. */
export type SessionTool = 'delegate' | 'handoff' | 'send_message';

/** The tool of a call that the session executes itself; null for other calls, also of a tool with the same name. */
export function sessionToolOf({ tools }: SessionContext, { tool }: Pick<CallRow, 'tool'>): SessionTool | null {
  if (tools[tool]?.by_session !== true) return null;
  return tool === 'delegate' || tool === 'handoff' || tool === 'send_message' ? tool : null;
}

/** Whether the calls of the batch run one at a time, because one of its tools is sequential. */
export function isSequential(context: SessionContext): boolean {
  return context.calls.some((row) => context.tools[row.tool]?.sequential);
}

/**
 * Whether the batch ends the run, unless the seam after it delivers a message. Denied and skipped calls do not count:
 * at least one other call is needed, and each other call must have ended as `ok` and be of a tool that terminates.
 */
export function batchTerminates(context: SessionContext): boolean {
  // An interrupt skipped the rest of the batch, so its sender gets another turn.
  if (context.dispatch_skipped) return false;
  let ran = 0;
  for (const row of context.calls) {
    if (row.ended === 'denied' || row.ended === 'skipped') continue;
    if (row.ended !== 'ok' || !context.tools[row.tool]?.terminates) return false;
    ran++;
  }
  return ran > 0;
}

/** The next call with a result that PostToolUse hooks must check. */
export function nextReturned(context: SessionContext): CallAt<'returned'> | undefined {
  return context.calls.find((row) => row.status === 'returned');
}
