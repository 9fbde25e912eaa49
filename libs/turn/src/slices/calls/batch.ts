/**
 * The calls of a batch: which one is checked, denied, parked or started next; the next event of the batch; and the
 * effects of running calls. Whether a call is allowed, denied, or needs an approval: `rulingOn` (ruling.ts). Whether a
 * call that may have run is sent again: `sendCall` (run-tool-call.ts in libs/session). If the session's tools cannot be
 * reopened, `SessionWorker.#callTool` (session-worker.ts in libs/session) reports its outcome as unknown instead. When a
 * person decides about an unknown outcome: `mustAskAboutUnknown` (approvals/approvals.ts). Calls that
 * a message skips: `dispatchCheckpoint` (injections/seam-passes.ts) selects them, `callsSkipped` (transitions.ts) notes
 * them, and `skippedResult` ends them.
 */

import type { Json, JsonObject, SessionEvent } from '@coxswain/protocol';
import type { SessionContext } from '../../core/context.ts';
import { reasonSuffix } from '../../core/decision.ts';
import type { AbortOrder, Effect } from '../../core/effect.ts';
import { nextEffectId } from '../../core/journal-place.ts';
import { approvalSettings, buildDenialByHookOrExpiry } from '../approvals/approvals.ts';
import { sessionToolEffects, sessionToolRefusal } from '../children/session-tools.ts';
import { handoffArgs, nextHandoffEvent, waitsForBatch } from '../handoff/handoff.ts';
import { hooksFor, isConsulted, isHooked, mayConsult, nextConsultEvent } from '../hooks/consult.ts';
import { PREEMPT_ORDER } from '../injections/preempt.ts';
import { suspendRequestOfCall } from '../suspension/requests.ts';
import { cancellerOf, cancelOrder, nameOf, uncheckedText } from './cancel.ts';
import {
  buildCallDenied,
  buildCallDeniedByRule,
  buildCallEnded,
  buildCallInterrupted,
  deniedByRule,
  returnedEnd,
} from './results.ts';
import { rulingOn } from './ruling.ts';
import type { CallAt, CallRow } from './state.ts';
import { callRow, isSequential, nextReturned, sessionToolOf, toolPayload } from './table.ts';

// ---- which call is next ----

/** The next call, in call order, that PreToolUse hooks must check. The call `except` is left out. */
export function nextToVet(context: SessionContext, except?: string): CallRow | undefined {
  if (context.hooks.length === 0) return undefined;
  return context.calls.find(
    (row) =>
      row.status === 'proposed' &&
      !row.vetted &&
      row.call_id !== except &&
      hooksFor(context, 'PreToolUse', row.tool).length > 0,
  );
}

/**
 * The next call, in call order, that permission_asked hooks must check, because its ruling is `ask`. The call `except`
 * is left out.
 */
export function nextToAskHooks(context: SessionContext, except?: string): CallRow | undefined {
  if (context.hooks.length === 0) return undefined;
  return context.calls.find(
    (row) =>
      row.status === 'proposed' &&
      !row.asked &&
      row.call_id !== except &&
      hooksFor(context, 'permission_asked', row.tool).length > 0 &&
      rulingOn(context, row).action === 'ask',
  );
}

/** Whether a call is allowed to start, by its ruling or by a person. */
function isAllowed(context: SessionContext, row: CallRow): row is CallAt<'proposed' | 'allowed'> {
  return (
    row.status === 'allowed' ||
    (row.status === 'proposed' && !row.problem && !row.decided && rulingOn(context, row).action === 'allow')
  );
}

/**
 * The next call that may start now, in call order; undefined if there is none, and in an aborting run. Up to
 * `parallel_calls` calls run at once, or one if a tool of the batch is sequential. A call with the status `returned`
 * still counts as running. The first hand-off of the batch waits for the end of all other calls (`waitsForBatch`). The
 * call `except` counts as ended.
 */
export function nextToStart(context: SessionContext, except?: string): CallAt<'proposed' | 'allowed'> | undefined {
  if (context.aborting) return undefined;
  const sequential = isSequential(context);
  const limit = sequential ? 1 : (context.pinned?.parallel_calls ?? 1);
  let busy = 0;
  let candidate: CallAt<'proposed' | 'allowed'> | undefined;
  let isBehindApproval = false;
  for (const row of context.calls) {
    if (row.call_id === except || row.status === 'ended') continue;
    if (row.status === 'running' || row.status === 'returned') busy++;
    // In a sequential batch a call that waits for its approval delays the later ones.
    else if (sequential && row.status === 'parked') isBehindApproval = true;
    else if (!candidate && !isBehindApproval && isAllowed(context, row) && !waitsForBatch(context, row, except))
      candidate = row;
  }
  return busy < limit ? candidate : undefined;
}

/** Whether the end of this call lets another one start. Only a call that was sent and has not ended uses a slot. */
export function makesRoom(context: SessionContext, callId: string): boolean {
  const row = callRow(context, callId);
  return (row?.status === 'running' || row?.status === 'returned') && nextToStart(context, callId) !== undefined;
}

/**
 * Whether another call can start if this running call, whose outcome is unknown, is parked. False in a sequential batch, and
 * for a call that is not running.
 */
export function parkingMakesRoom(context: SessionContext, callId: string): boolean {
  return callRow(context, callId)?.status === 'running' && !isSequential(context) && makesRoom(context, callId);
}

/**
 * The next open call that was denied: by rules, by a person, by an OnApprovalRequested hook, or by the expiry of its
 * approval. Denials by other hooks end a call at once (hooked.ts).
 */
export function nextToRefuse(context: SessionContext): CallAt<'proposed'> | undefined {
  return context.calls.find(
    (row): row is CallAt<'proposed'> =>
      row.status === 'proposed' &&
      !row.problem &&
      (row.decided?.decision === 'deny' || (!row.decided && rulingOn(context, row).action === 'deny')),
  );
}

/** The next call that needs a human approval. The event `approval_requested` gives it the status `parked`. */
export function nextToPark(context: SessionContext): CallAt<'proposed'> | undefined {
  return context.calls.find(
    (row): row is CallAt<'proposed'> =>
      row.status === 'proposed' && !row.problem && !row.decided && rulingOn(context, row).action === 'ask',
  );
}

// ---- the next event ----

/** The error end of the next call with a `problem`, which can never run; or null. */
export function refuseMalformed(context: SessionContext): SessionEvent | null {
  const row = context.calls.find((candidate) => candidate.problem && candidate.status !== 'ended');
  if (!row?.problem) return null;
  return buildCallEnded(row, 'error', `${row.problem.message} The tool call was not run.`, {
    detail: { code: row.problem.code },
  });
}

/** The next event of the consult of gate_tool_calls hooks: one consult for all proposed calls. Null while hooks are called. */
export function consultGate(context: SessionContext): SessionEvent | null {
  const calls = context.calls.filter((row) => row.status === 'proposed' && !row.problem).map(toolPayload);
  return nextConsultEvent(context, 'gate_tool_calls', { calls });
}

/**
 * The next event of a consult of hooks about one call; null while hooks are called.
 * @param candidate the call of the next consult. An open consult keeps its call.
 */
export function consultCall(
  context: SessionContext,
  point: 'PreToolUse' | 'permission_asked',
  candidate: CallRow | undefined,
): SessionEvent | null {
  const open = context.consult?.call_id;
  const row = open === undefined ? candidate : callRow(context, open);
  if (row) return nextConsultEvent(context, point, { tool: toolPayload(row) }, row.tool, row.call_id);
  // No call is left for this point: during another consult, the last one was cancelled or its hooks were removed.
  return context.consult === null ? { type: 'consult_ended', point } : null;
}

/**
 * The next event of the batch, or null if it waits for an input. The first of these, with the calls in call order:
 * 1. the end of a denied call,
 * 2. the approval request of a call,
 * 3. the start of an allowed call; instead, the error end of a call of one of the session's own tools that cannot
 *    start (`sessionToolRefusal`); before the start of a hand-off, `handoff_emitted` and the OnHandoffEmitted consult,
 * 4. the next event of the PostToolUse consult about a result (`consultReturned`).
 */
export function nextBatchEvent(context: SessionContext): SessionEvent | null {
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
      ...approvalSettings(context),
    };
  }
  const toStart = nextToStart(context);
  if (toStart) {
    const refusal = sessionToolRefusal(context, toStart);
    if (refusal) return buildCallEnded(toStart, 'error', refusal.text, { detail: { code: refusal.code } });
    const emitted = nextHandoffEvent(context, toStart);
    if (emitted) return emitted;
    // The answers of an open consult are awaited even if its hooks were removed meanwhile.
    if (toStart.handoff === 'emitted' && (isHooked(context, 'OnHandoffEmitted') || isConsulted(context, toStart)))
      return consultHandoff(context, toStart);
    const { call_id, tool, args } = toStart;
    return { type: 'call_started', call_id, tool, args, effect_id: nextEffectId(context) };
  }
  const returned = nextReturned(context);
  return returned && mayConsult(context, 'PostToolUse', returned.call_id) ? consultReturned(context, returned) : null;
}

function consultHandoff(context: SessionContext, row: CallRow): SessionEvent | null {
  return nextConsultEvent(context, 'OnHandoffEmitted', { ...handoffArgs(row) }, undefined, row.call_id);
}

/**
 * The next event of the PostToolUse consult about a returned call; null while hooks are called. If no hook applies, no
 * `consult_ended` is recorded. The next event is then the call's request to suspend the session, if one is due
 * (`suspendRequestOfCall`), otherwise the end of the call. The request comes first, because the end removes it from the
 * row.
 */
function consultReturned(context: SessionContext, row: CallAt<'returned'>): SessionEvent | null {
  const { result, park } = row.returned;
  const detail = { tool: toolPayload(row), result: result as unknown as Json, is_error: result.is_error };
  const event = nextConsultEvent(context, 'PostToolUse', detail, row.tool, row.call_id);
  if (event?.type !== 'consult_ended') return event;
  const end = returnedEnd(row, result);
  const { call_id } = row;
  const [request] = suspendRequestOfCall(context, { call_id, status: end.status, result, park });
  return request ?? end;
}

/**
 * The next event of the file_edited consult about the first edited file; null without edited files, and while hooks are
 * called. One consult for each file, because a hook's pattern and its answer are about one file.
 */
export function consultEditedFile(context: SessionContext): SessionEvent | null {
  const [path] = context.edited;
  return path === undefined ? null : nextConsultEvent(context, 'file_edited', { path }, path);
}

function refuse(context: SessionContext, row: CallAt<'proposed'>): SessionEvent {
  if (row.decided?.expired || row.decided?.hook !== undefined) return buildDenialByHookOrExpiry(row, row.decided);
  if (row.decided) {
    const { actor, reason } = row.decided;
    const who = actor ? ` by ${actor.name}` : '';
    if (row.in_doubt) return buildCallInterrupted(row, `A re-run was denied${who}${reasonSuffix(reason)}.`);
    return buildCallDenied(
      row,
      { by: 'user', ...(actor ? { actor } : {}), ...(reason === undefined ? {} : { reason }) },
      `Denied${who}${reasonSuffix(reason)}.`,
    );
  }
  const { rule } = rulingOn(context, row);
  return row.in_doubt ? buildCallInterrupted(row, deniedByRule(rule)) : buildCallDeniedByRule(row, rule);
}

/**
 * In the teardown: the end of the next open call that is not in flight, or null. For a parked call the end of its wait
 * for an approval comes first. A returned call whose result hooks are checking is left out, because the end of their
 * consult ends it.
 */
export function endCallNotInFlight(context: SessionContext): SessionEvent | null {
  for (const row of context.calls) {
    if (row.status === 'parked') return { type: 'approval_decided', call_id: row.call_id, decision: 'aborted' };
    if (row.in_doubt && row.status !== 'ended') return buildCallInterrupted(row, 'The run ended before a re-run.');
    if (row.status === 'proposed' || row.status === 'allowed') {
      return buildCallEnded(row, 'aborted', `The tool call was not run: ${endedFirst(context)}.`);
    }
    if (row.status === 'returned' && context.consult?.call_id !== row.call_id)
      return buildCallEnded(row, 'cancelled', uncheckedText(cancellerOf(context, row)));
  }
  return null;
}

function endedFirst(context: SessionContext): string {
  const { cancel_actor, cancel_reason, failure, stop_reason } = context;
  if (stop_reason === 'cancelled') return `${nameOf(cancel_actor)} cancelled the run${reasonSuffix(cancel_reason)}`;
  return `the run ended${reasonSuffix(cancel_reason ?? failure?.message)}`;
}

/**
 * The end of the next call that the last checkpoint skipped (NEXT-1, core/next.ts), or null. For a parked call the end
 * of its wait for an approval comes first.
 */
export function skippedResult(context: SessionContext): SessionEvent | null {
  const skipped = context.skipping[0];
  const row = skipped === undefined ? undefined : callRow(context, skipped);
  if (!row) return null;
  if (row.status === 'parked') return { type: 'approval_decided', call_id: row.call_id, decision: 'superseded' };
  if (row.in_doubt) return buildCallInterrupted(row, 'A message arrived before anyone approved a re-run.');
  return buildCallEnded(
    row,
    'skipped',
    'Skipped: a message arrived before this tool call started. The message is below.',
  );
}

// ---- effects ----

/**
 * The effects of running calls. A call that a worker has accepted has an effect only while it must stop. Calls of the
 * session's own tools: {@link sessionToolEffects}. The order to stop a call is that of its own cancel, otherwise that of the
 * run (`abort`), otherwise that of a preempting interrupt. The host acts on the first order that it gets for a running
 * effect (`EffectTable.#stopIfAsked` in libs/session). A later order changes neither the reason nor the grace period,
 * unless another owner starts the effect again.
 */
export function callEffects(context: SessionContext, abort: AbortOrder | null): readonly Effect[] {
  return context.calls.flatMap((row): readonly Effect[] => {
    if (row.status !== 'running' || row.effect_id === undefined) return [];
    const { call_id: callId, tool, cancel } = row;
    const order = (cancel ? cancelOrder(cancel) : null) ?? abort ?? (row.preempted ? PREEMPT_ORDER : null);
    const head = { id: row.effect_id, epoch: row.epoch };
    const sessionTool = sessionToolOf(context, row);
    if (sessionTool !== null) return sessionToolEffects(context, row, sessionTool, head, order);
    // The worker that accepted the call sends its outcome as a command. The host only tells the worker to stop.
    if (row.accepted !== undefined)
      return order ? [{ kind: 'stop_call', ...head, abort: null, callId, tool, order }] : [];
    return [{ kind: 'call_tool', ...head, abort: order, callId, tool, args: row.args as JsonObject }];
  });
}
