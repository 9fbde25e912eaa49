/**
 * The next event for the calls of a batch: denials, consults, approvals, starts, and results.
 */

import type { Json, SessionEvent } from '@coxswain/protocol';
import type { SessionContext } from '../../core/context.ts';
import { because } from '../../core/decision.ts';
import { effectId } from '../../core/place.ts';
import { asksFor, buildDenialByHookOrExpiry } from '../approvals/approvals.ts';
import { crewRefusal } from '../children/delegation.ts';
import { emitsHandoff, handoffArgs } from '../handoff/handoff.ts';
import { consult, consultable, isConsulted } from '../hooks/consult.ts';
import { isHooked } from '../hooks/registrations.ts';
import { parkRequested } from '../suspension/requests.ts';
import { cancellerOf, nameOf, unseenText } from './cancel.ts';
import { nextToPark, nextToRefuse, nextToStart, rulingOn } from './gate.ts';
import { buildCallDenied, buildCallEnded, endedUnknown, returnedEnd } from './results.ts';
import type { CallAt, CallRow } from './state.ts';
import { callRow, nextReturned, toolPayload } from './table.ts';

/** The end of the next call that can never run, or null. */
export function refuseMalformed(context: SessionContext): SessionEvent | null {
  const row = context.calls.find((candidate) => candidate.problem && candidate.status !== 'ended');
  if (!row?.problem) return null;
  return buildCallEnded(row, 'error', `${row.problem.message} The tool call was not run.`, {
    detail: { code: row.problem.code },
  });
}

/** The consult of gate_tool_calls hooks: one for the whole batch. */
export function gateConsult(context: SessionContext): SessionEvent | null {
  const calls = context.calls.filter((row) => row.status === 'proposed' && !row.problem).map(toolPayload);
  return consult(context, 'gate_tool_calls', { calls });
}

/** The next consult of hooks about one call. */
export function consultCall(
  context: SessionContext,
  point: 'PreToolUse' | 'permission_asked',
  candidate: CallRow | undefined,
): SessionEvent | null {
  const open = context.consult?.call_id;
  const row = open === undefined ? candidate : callRow(context, open);
  if (row) return consult(context, point, { tool: toolPayload(row) }, row.tool, row.call_id);
  // The call was cancelled while another consult was open.
  return context.consult === null ? { type: 'consult_ended', point } : null;
}

/**
 * The next event while calls run: denials, approval requests, starts, then consults about results. Null if the calls
 * wait for an input.
 */
export function runCalls(context: SessionContext): SessionEvent | null {
  const refused = nextToRefuse(context);
  if (refused) return refuse(context, refused);
  const toPark = nextToPark(context);
  if (toPark) {
    const { rule } = rulingOn(context, toPark);
    return {
      type: 'approval_requested',
      call_id: toPark.call_id,
      tool: toPark.tool,
      args: toPark.args,
      requested_by: `rule:${rule}`,
      ...asksFor(context),
    };
  }
  const toStart = nextToStart(context);
  if (toStart) {
    const refusal = crewRefusal(context, toStart);
    if (refusal) return buildCallEnded(toStart, 'error', refusal.text, { detail: { code: refusal.code } });
    const emitted = emitsHandoff(context, toStart);
    if (emitted) return emitted;
    if (toStart.handoff === 'emitted' && (isHooked(context, 'OnHandoffEmitted') || isConsulted(context, toStart)))
      return consultHandoff(context, toStart);
    const { call_id, tool, args } = toStart;
    return { type: 'call_started', call_id, tool, args, effect_id: effectId(context) };
  }
  const returned = nextReturned(context);
  return returned && consultable(context, 'PostToolUse', returned.call_id) ? consultReturned(context, returned) : null;
}

function consultHandoff(context: SessionContext, row: CallRow): SessionEvent | null {
  return consult(context, 'OnHandoffEmitted', { ...handoffArgs(row) }, undefined, row.call_id);
}

function consultReturned(context: SessionContext, row: CallAt<'returned'>): SessionEvent | null {
  const { result, park } = row.returned;
  const detail = { tool: toolPayload(row), result: result as unknown as Json, is_error: result.is_error };
  const asked = consult(context, 'PostToolUse', detail, row.tool, row.call_id);
  if (asked?.type !== 'consult_ended') return asked;
  const end = returnedEnd(row, result);
  const { call_id } = row;
  const [parks] = parkRequested(context, { call_id, status: end.status, result, park });
  return parks && context.suspend?.call_id !== call_id ? parks : end;
}

/** One consult per file: a handler's pattern and its answer are about one file. */
export function consultEdited(context: SessionContext): SessionEvent | null {
  const [path] = context.edited;
  return path === undefined ? null : consult(context, 'file_edited', { path }, path);
}

function refuse(context: SessionContext, row: CallAt<'proposed'>): SessionEvent {
  if (row.decided?.expired || row.decided?.hook !== undefined) return buildDenialByHookOrExpiry(row, row.decided);
  if (row.decided) {
    const { actor, reason } = row.decided;
    const who = actor ? ` by ${actor.name}` : '';
    if (row.in_doubt) return endedUnknown(row, `A re-run was denied${who}${because(reason)}.`);
    return buildCallDenied(
      row,
      { by: 'user', ...(actor ? { actor } : {}), ...(reason === undefined ? {} : { reason }) },
      `Denied${who}${because(reason)}.`,
    );
  }
  const { rule } = rulingOn(context, row);
  return buildCallDenied(row, { by: 'rule', rule }, `Denied by permission rule ${rule}.`);
}

/** The end of the next open call that is not in flight, after the end of its approval; null if there is none. */
export function abortUnsent(context: SessionContext): SessionEvent | null {
  for (const row of context.calls) {
    if (row.status === 'parked') return { type: 'approval_decided', call_id: row.call_id, decision: 'aborted' };
    if (row.in_doubt && row.status !== 'ended') return endedUnknown(row, 'The run ended before a re-run.');
    if (row.status === 'proposed' || row.status === 'allowed') {
      return buildCallEnded(row, 'aborted', `The tool call was not run: ${endedFirst(context)}.`);
    }
    if (row.status === 'returned' && context.consult?.call_id !== row.call_id)
      return buildCallEnded(row, 'cancelled', unseenText(cancellerOf(context, row)));
  }
  return null;
}

function endedFirst(context: SessionContext): string {
  const { cancel_actor, cancel_reason, failure, stop_reason } = context;
  if (stop_reason === 'cancelled') return `${nameOf(cancel_actor)} cancelled the run${because(cancel_reason)}`;
  return `the run ended${because(cancel_reason ?? failure?.message)}`;
}

/**
 * The result of the next call that the last checkpoint skipped (NEXT-1). For a parked call the end of its approval
 * comes first.
 */
export function skippedResult(context: SessionContext): SessionEvent | null {
  const skipped = context.skipping[0];
  const row = skipped === undefined ? undefined : callRow(context, skipped);
  if (!row) return null;
  if (row.status === 'parked') return { type: 'approval_decided', call_id: row.call_id, decision: 'superseded' };
  if (row.in_doubt) return endedUnknown(row, 'A message arrived before anyone approved a re-run.');
  return buildCallEnded(
    row,
    'skipped',
    'Skipped: a message arrived before this tool call started. The message is below.',
  );
}
