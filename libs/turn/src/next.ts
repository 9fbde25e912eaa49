/**
 * `next`: the one derived event that follows from a state, or null where the machine waits for the world.
 *
 * N1  Results first: a provider rejects a user message between a call and its result. What a checkpoint skipped gets
 *     its result before what it delivered is said.
 * N2  A checkpoint delivers; nothing else takes steering or reminders out of the queue.
 * N3  One event at a time: each is put to the machine before the next is asked for.
 */
import {
  assertNever,
  type Denial,
  type HookPoint,
  type Json,
  type JsonObject,
  messageText,
  redactArgs,
  SEAMS,
  type SeamKind,
  type SessionEvent,
  type StopReason,
  type ToolResult,
  usdOf,
  userText,
} from '@coxswain/protocol';
import { announce, tooMuchToTell } from './announcements.ts';
import { asksFor, refusedUnasked } from './approvals.ts';
import { reachedThreshold, uncoveredAnswer } from './budgets.ts';
import { cancellerOf, nameOf, unseenText } from './canceller.ts';
import { nextOfPass, passPayload } from './compaction.ts';
import type { CallRow, PendingInjection, SessionContext } from './context.ts';
import { parkRequested } from './decide-suspend.ts';
import { because } from './decision.ts';
import { childOwed, crewRefusal } from './delegation.ts';
import { consultEdit, overruledEdit } from './edited-calls.ts';
import { type EndingPoint, endingPayload } from './ending.ts';
import { feedbackEvent, owedFeedback } from './feedback.ts';
import { guardConsult } from './guard.ts';
import { emitsHandoff, handoffArgs, owedBrief, personaOfTurn } from './handoff.ts';
import { reminderMessage } from './hook-reminders.ts';
import { MACHINE_VERSION } from './machine-versions.ts';
import { promptOfMessage } from './prompt-of-message.ts';
import * as q from './queries.ts';
import { nextExpiry, supersededBy } from './reminders.ts';
import { returnedEnd } from './rewrite-result.ts';
import { stallNotice } from './stall-watch.ts';
import { leafOf, type SessionState } from './state.ts';
import {
  abandonsStep,
  beginsStep,
  endsStep,
  leavesStep,
  openStep,
  stepHasEnded,
  stepPayload,
  stepTarget,
} from './steps.ts';
import { isStopped, predicatesAsked, toolStop } from './stop-conditions.ts';
import { needsRepair, outputOfRun, rejectsOutput } from './structured-output.ts';
import { endsSuspension, lapsedSuspension, parkingPayload, takesHold } from './suspension.ts';
import { endedUnknown } from './unknown-outcome.ts';
import { messagesOf } from './view-account.ts';

/** The one event that follows, or null. Pure. */
export function next(state: SessionState): SessionEvent | null {
  const { context } = state;
  const leaf = leafOf(state);
  return (
    overruledEdit(context) ??
    owed(context) ??
    abandonsStep(context) ??
    childOwed(context, effectId(context)) ??
    (leaf.startsWith('tearing_down') ? lapsedSuspension(context) : null) ??
    budgetTold(context, leaf) ??
    guardConsult(context, leaf, effectId(context)) ??
    announce(context, leaf, effectId(context)) ??
    derive[leaf]?.(context) ??
    null
  );
}

// A run that is ending tells no more: its end says what it has used.
function budgetTold(context: SessionContext, leaf: string): SessionEvent | null {
  if (!context.pinned?.budgets || !context.run_started || context.aborting) return null;
  return leaf === 'stopped' || leaf === 'failed' || leaf.startsWith('tearing_down') ? null : reachedThreshold(context);
}

type Derivation = (context: SessionContext) => SessionEvent | null;

/** What each state goes on with by itself. A state that is not listed waits for the world. */
const derive: { readonly [leaf: string]: Derivation } = {
  'provisioning.session_start': (context) =>
    consult(context, 'session_start', { source: context.run === 1 ? 'start' : 'prompt' }),
  'provisioning.user_prompt_submit': (context) =>
    consult(context, 'user_prompt_submit', { prompt: context.prompt, origin: 'prompt' }),
  'assistant_streaming.opening': (context) => {
    // A turn begins when all of the last one was told (A2).
    if (context.announcements.length > 0) return null;
    const step = beginsStep(context);
    if (step) return step;
    const notice = stallNotice(context);
    return notice ? feedbackEvent(context, notice) : { type: 'turn_start', turn: context.turn + 1 };
  },
  'assistant_streaming.pre_step': (context) => consultStep(context, 'PreStep'),
  'assistant_streaming.iteration_start': (context) => checkpoint(context, 'iteration_start'),
  'assistant_streaming.pre_compact': (context) => checkpoint(context, 'pre_compact'),
  'assistant_streaming.vetting_compaction': (context) => consult(context, 'pre_compact', passPayload(context)),
  'assistant_streaming.compacting': (context) => nextOfPass(context, effectId(context)),
  'assistant_streaming.compacted': (context) => consult(context, 'post_compact', passPayload(context)),
  'assistant_streaming.transforming': (context) =>
    consult(context, 'transform_context', {
      message_count: messagesOf(context.view),
      estimated_tokens: context.view.tokens,
    }),
  'assistant_streaming.post_compact': (context) => checkpoint(context, 'post_compact'),
  'function_execute.pre_tool_dispatch': (context) => refuseMalformed(context) ?? dispatchCheckpoint(context),
  'function_execute.pre_tool_use': (context) => consultCall(context, 'PreToolUse', q.nextToVet(context)),
  'function_execute.gate_tool_calls': gateConsult,
  'function_execute.permission_asked': (context) => consultCall(context, 'permission_asked', q.nextToAsk(context)),
  'function_execute.dispatching': dispatchCheckpoint,
  'function_execute.running': runCalls,
  'function_execute.post_tool_dispatch': (context) => toolStop(context) ?? checkpoint(context, 'post_tool_dispatch'),
  'function_awaiting_approval.parked': (context) => consultEdit(context, effectId(context)) ?? runCalls(context),
  'function_awaiting_approval.pre_tool_dispatch': dispatchCheckpoint,
  'steering_check.post_turn': (context) => consult(context, 'post_turn', {}),
  'steering_check.file_edited': consultEdited,
  'steering_check.iteration_end': (context) => predicatesAsked(context) ?? checkpoint(context, 'iteration_end'),
  'steering_check.post_step': (context) => consultStep(context, 'PostStep'),
  'steering_check.closing': closeTurn,
  'steering_check.follow_up': takeFollowup,
  stopped: awaitedRun,
  failed: awaitedRun,
  'daemon_idle.session_idle': (context) => consult(context, 'session_idle', {}),
  'daemon_idle.daemon_idle_pre': (context) => checkpoint(context, 'daemon_idle_pre'),
  'daemon_idle.daemon_idle_post': (context) => checkpoint(context, 'daemon_idle_post'),
  'suspended.pre_suspend': (context) => consult(context, 'pre_suspend', parkingPayload(context.suspend)),
  'suspended.entering': (context) => takesHold(context, effectId(context)),
  'suspended.parked': endsSuspension,
  'suspended.post_resume': (context) => consult(context, 'post_resume', {}),
  'tearing_down.unwinding': abortUnsent,
  'tearing_down.turn_closing': (context) =>
    leavesStep(context) ?? (context.turn_open ? turnEnd(context) : context.run_started ? null : unstartedRun(context)),
  'tearing_down.file_edited': consultEdited,
  'tearing_down.loop_exit': (context) => checkpoint(context, 'loop_exit'),
  'tearing_down.session_error': consultEnding('session_error'),
  'tearing_down.session_end': consultEnding('session_end'),
  'tearing_down.pre_finish': consultEnding('pre_finish'),
  'tearing_down.on_unsettled_detected': consultEnding('on_unsettled_detected'),
  'tearing_down.post_finish': consultEnding('post_finish'),
  'tearing_down.ending': endOfRun,
};

function endOfRun(context: SessionContext): SessionEvent | null {
  if (context.announcements.length > 0) return null;
  return {
    type: 'agent_end',
    run: context.run,
    stop_reason: stopReason(context),
    turns: context.turn,
    usage: context.run_usage,
    ...cost(context, context.run_cost),
    pending: context.pending.length + context.followups.length,
    ...(context.failure ? { error: context.failure } : {}),
    ...(context.failed_at === null ? {} : { failed_at: context.failed_at }),
    ...(context.cancel_reason === null ? {} : { reason: context.cancel_reason }),
    ...outputOfRun(context),
  };
}

// ---- what the last checkpoint owes (N1) ----

function owed(context: SessionContext): SessionEvent | null {
  const skipped = context.skipping[0];
  if (skipped !== undefined) {
    const row = q.callRow(context, skipped);
    if (row?.status === 'parked') return { type: 'approval_decided', call_id: skipped, decision: 'superseded' };
    if (row?.in_doubt) return endedUnknown(row, 'A message arrived before anyone approved a re-run.');
    if (row)
      return ended(row, 'skipped', 'Skipped: a message arrived before this tool call started. The message is below.');
  }
  const told = context.waking?.messages[0];
  if (context.waking && told) {
    const { id, seam } = context.waking;
    return { type: 'message_injected', command_id: id, origin: 'direct', seam, turn: context.turn, message: told };
  }
  const brief = owedBrief(context);
  if (brief) return brief;
  const injection = context.delivering[0];
  return injection ? delivery(context, injection) : (owedFeedback(context) ?? nextExpiry(context));
}

function delivery(context: SessionContext, injection: PendingInjection): SessionEvent {
  const { command_id, body, replaced_by } = injection;
  const head = { command_id, seam: context.delivering_seam, turn: context.turn };
  const tail = {
    ...(replaced_by === undefined ? {} : { replaced_by }),
    ...(injection.mode === 'audit_only' ? { audit_only: true as const } : {}),
  };
  switch (injection.kind) {
    case 'steer':
      return {
        type: 'message_injected',
        ...head,
        origin: 'steer',
        message: userText(messageText(body, injection.from)),
        ...tail,
      };
    case 'remind': {
      const older = tail.audit_only ? undefined : supersededBy(context, injection);
      if (older) return { type: 'reminder_deduped', command_id: older.command_id, by: command_id };
      const pinned = injection.reminder?.preserve_on_compact ? { preserve_on_compact: true as const } : {};
      return { type: 'reminder_fired', ...head, message: reminderMessage(injection), ...pinned, ...tail };
    }
    default:
      return assertNever(injection.kind);
  }
}

// ---- seams ----

function checkpoint(context: SessionContext, kind: SeamKind, skipped: readonly string[] = []): SessionEvent | null {
  if (q.waitsForVerdict(context, kind) || (kind !== 'loop_exit' && tooMuchToTell(context))) return null;
  const delivered = q.deliverable(context, kind);
  const skips = delivered.length > 0 && skipped.length > 0;
  return {
    type: 'loop_checkpoint',
    session_id: context.session_id,
    iteration: kind === 'daemon_idle_pre' || kind === 'daemon_idle_post' ? 0 : context.turn,
    kind,
    delivered: delivered.length,
    delivered_ids: delivered.map((injection) => injection.command_id),
    inbox_delivered: SEAMS[kind].feedback ? context.feedback.length : 0,
    dispatch_skipped: skips,
    ...(skips ? { skipped_call_ids: [...skipped] } : {}),
  };
}

/** The stop seam: if it delivers, every call that has not been started is skipped. */
function dispatchCheckpoint(context: SessionContext): SessionEvent | null {
  const unstarted = context.calls.filter(
    (row) => row.status === 'proposed' || row.status === 'parked' || row.status === 'allowed',
  );
  return checkpoint(
    context,
    'pre_tool_dispatch',
    unstarted.map((row) => row.call_id),
  );
}

// ---- calls ----

function refuseMalformed(context: SessionContext): SessionEvent | null {
  const row = context.calls.find((candidate) => candidate.problem && candidate.status !== 'ended');
  if (!row?.problem) return null;
  return ended(row, 'error', `${row.problem.message} The tool call was not run.`, {
    detail: { code: row.problem.code },
  });
}

function runCalls(context: SessionContext): SessionEvent | null {
  const refused = q.nextToRefuse(context);
  if (refused) return refuse(context, refused);
  const toPark = q.nextToPark(context);
  if (toPark) {
    const { rule } = q.rulingOn(context, toPark);
    return {
      type: 'approval_requested',
      call_id: toPark.call_id,
      tool: toPark.tool,
      args: toPark.args,
      requested_by: `rule:${rule}`,
      ...asksFor(context),
    };
  }
  const toStart = q.nextToStart(context);
  if (toStart) {
    const refusal = crewRefusal(context, toStart);
    if (refusal) return ended(toStart, 'error', refusal.text, { detail: { code: refusal.code } });
    const emitted = emitsHandoff(context, toStart);
    if (emitted) return emitted;
    if (toStart.handoff === 'emitted' && (q.isHooked(context, 'OnHandoffEmitted') || q.isConsulted(context, toStart)))
      return consultHandoff(context, toStart);
    const { call_id, tool, args } = toStart;
    return { type: 'call_started', call_id, tool, args, effect_id: effectId(context) };
  }
  const returned = q.nextReturned(context);
  return returned && consultable(context, 'PostToolUse', returned.call_id) ? consultReturned(context, returned) : null;
}

function consultHandoff(context: SessionContext, row: CallRow): SessionEvent | null {
  return consult(context, 'OnHandoffEmitted', { ...handoffArgs(row) }, undefined, row.call_id);
}

function refuse(context: SessionContext, row: CallRow): SessionEvent {
  if (row.decided?.expired || row.decided?.hook !== undefined) return refusedUnasked(row, row.decided);
  if (row.decided) {
    const { actor, reason } = row.decided;
    const who = actor ? ` by ${actor.name}` : '';
    if (row.in_doubt) return endedUnknown(row, `A re-run was denied${who}${because(reason)}.`);
    return denied(
      row,
      { by: 'user', ...(actor ? { actor } : {}), ...(reason === undefined ? {} : { reason }) },
      `Denied${who}${because(reason)}.`,
    );
  }
  const { rule } = q.rulingOn(context, row);
  return denied(row, { by: 'rule', rule }, `Denied by permission rule ${rule}.`);
}

function abortUnsent(context: SessionContext): SessionEvent | null {
  for (const row of context.calls) {
    if (row.status === 'parked') return { type: 'approval_decided', call_id: row.call_id, decision: 'aborted' };
    if (row.in_doubt && row.status !== 'ended') return endedUnknown(row, 'The run ended before a re-run.');
    if (row.status === 'proposed' || row.status === 'allowed') {
      return ended(row, 'aborted', `The tool call was not run: ${endedFirst(context)}.`);
    }
    if (row.status === 'returned' && context.consult?.call_id !== row.call_id)
      return ended(row, 'cancelled', unseenText(cancellerOf(context, row)));
  }
  return null;
}

function endedFirst(context: SessionContext): string {
  const { cancel_actor, cancel_reason, failure, stop_reason } = context;
  if (stop_reason === 'cancelled') return `${nameOf(cancel_actor)} cancelled the run${because(cancel_reason)}`;
  return `the run ended${because(cancel_reason ?? failure?.message)}`;
}

/** A call's end with a result that the runtime wrote. */
export function ended(
  row: Pick<CallRow, 'call_id' | 'tool'>,
  status: Extract<SessionEvent, { type: 'call_ended' }>['status'],
  text: string,
  extra: { readonly detail?: JsonObject; readonly denial?: Denial } = {},
): SessionEvent {
  const result: ToolResult = {
    content: [{ type: 'text', text }],
    is_error: true,
    ...(extra.detail ? { detail: extra.detail } : {}),
  };
  return {
    type: 'call_ended',
    call_id: row.call_id,
    tool: row.tool,
    status,
    result,
    is_error: true,
    duration_ms: 0,
    ...(extra.denial ? { denial: extra.denial } : {}),
  };
}

/** A refused call's end: what refused it stands in the result's detail and in the event. */
export function denied(row: Pick<CallRow, 'call_id' | 'tool' | 'args'>, denial: Denial, text: string): SessionEvent {
  const whole: Denial = { ...denial, args: redactArgs(row.args) };
  return ended(row, 'denied', text, { denial: whole, detail: { denied: whole as unknown as Json } });
}

// ---- turn and run ----

function turnEnd(context: SessionContext): SessionEvent {
  return {
    type: 'turn_end',
    turn: context.turn,
    usage: context.turn_usage,
    ...cost(context, context.turn_cost),
    ...(context.dispatch_skipped ? { dispatch_skipped: true, skip_reason: 'interrupt_immediate' } : {}),
  };
}

// Without a price nothing is said: 0 would be a claim.
function cost(context: SessionContext, nanoUsd: number | null): { readonly cost_usd?: number } {
  return nanoUsd === null || !context.pinned?.price ? {} : { cost_usd: usdOf(nanoUsd) };
}

function closeTurn(context: SessionContext): SessionEvent | null {
  const question = context.batch_open ? predicatesAsked(context) : null;
  if (question) return question;
  const step = endsStep(context);
  if (step) return step;
  const rejected = needsRepair(context) ? rejectsOutput(context, q.isCapped(context)) : null;
  if (rejected) return rejected;
  const uncovered = q.wouldGoOn(context) && !isStopped(context) ? uncoveredAnswer(context) : null;
  return uncovered ?? turnEnd(context);
}

function takeFollowup(context: SessionContext): SessionEvent | null {
  const followup = q.nextFollowup(context);
  if (!followup || q.followupAwaitsVerdict(context)) return null;
  return {
    type: 'message_injected',
    command_id: followup.command_id,
    origin: 'followup',
    seam: 'steering_check',
    turn: context.turn,
    message: userText(messageText(followup.body, followup.from)),
    ...(followup.replaced_by === undefined ? {} : { replaced_by: followup.replaced_by }),
  };
}

/** The run that a message asked for when the one before took no more. Whoever waits for the answer of that one is told it first. */
function awaitedRun(context: SessionContext): SessionEvent | null {
  const message = context.followups.find(({ begins_run }) => begins_run);
  if (!message || context.notice || context.consult) return null;
  return promptOfMessage(context, message);
}

/** A run that ended before its surroundings were known still begins and ends once. */
export function unstartedRun(context: SessionContext): SessionEvent {
  return {
    type: 'agent_start',
    run: context.run,
    machine_version: MACHINE_VERSION,
    persona: context.pinned?.persona ?? null,
    model: context.pinned?.model ?? null,
    fingerprints: null,
  };
}

function stopReason(context: SessionContext): StopReason {
  if (context.stop_reason) return context.stop_reason;
  if (context.batch_open && context.delivered_at_end === 0 && q.batchTerminates(context)) return 'terminated';
  if (isStopped(context)) return 'stop_condition';
  if (context.batch_open && !stepHasEnded(context)) return cap(context);
  return q.isCapped(context) && (context.cut_short || needsRepair(context) || q.anythingWaits(context))
    ? cap(context)
    : 'end_turn';
}

function cap(context: SessionContext): StopReason {
  return q.isAtLastTurn(context) ? 'max_turns' : 'budget_exceeded';
}

// ---- hooks ----

/** The id that the next effect asked for in this record gets. Valid once an event of the record has been folded. */
function effectId(context: SessionContext): string {
  return `${context.n}-${context.next_effect}`;
}

// Consults of one session never overlap: a point that finds one open waits for its end. Who was not asked in the record
// that opened it is not asked in a later one, whatever has become of the table.
function consultable(context: SessionContext, point: HookPoint, callId?: string): boolean {
  const { consult } = context;
  return consult === null || (consult.point === point && consult.call_id === callId && q.isAsking(context));
}

function consult(
  context: SessionContext,
  point: HookPoint,
  detail: JsonObject,
  target?: string,
  callId?: string,
): SessionEvent | null {
  if (!consultable(context, point, callId)) return null;
  const open = context.consult;
  const payload = open?.payload ?? { ...q.payloadHead(context, point), ...detail };
  const hooks = q.hooksFor(context, point, target ?? personaOfTurn(context), payload);
  const hook = hooks[open?.hooks.length ?? 0];
  const call = callId === undefined ? {} : { call_id: callId };
  if (!hook) return open ? null : { type: 'consult_ended', point, ...call };
  return {
    type: 'hook_call',
    hook: hook.id,
    point,
    effect_id: open?.effect_id ?? effectId(context),
    ...call,
    payload,
  };
}

function consultCall(
  context: SessionContext,
  point: 'PreToolUse' | 'permission_asked',
  candidate: CallRow | undefined,
): SessionEvent | null {
  const open = context.consult?.call_id;
  const row = open === undefined ? candidate : q.callRow(context, open);
  if (row) return consult(context, point, { tool: q.toolPayload(row) }, row.tool, row.call_id);
  // What was to be asked about has been cancelled while something else was asked.
  return context.consult === null ? { type: 'consult_ended', point } : null;
}

function consultReturned(context: SessionContext, row: CallRow): SessionEvent | null {
  const { returned } = row;
  if (!returned) return null;
  const { result } = returned;
  const detail = { tool: q.toolPayload(row), result: result as unknown as Json, is_error: result.is_error };
  const asked = consult(context, 'PostToolUse', detail, row.tool, row.call_id);
  if (asked?.type !== 'consult_ended') return asked;
  const end = returnedEnd(row, result);
  const { call_id } = row;
  const [parks] = parkRequested(context, { call_id, status: end.status, result, park: returned.park });
  return parks && context.suspend?.call_id !== call_id ? parks : end;
}

function gateConsult(context: SessionContext): SessionEvent | null {
  const calls = context.calls.filter((row) => row.status === 'proposed' && !row.problem).map(q.toolPayload);
  return consult(context, 'gate_tool_calls', { calls });
}

/** One consult per file: a handler's pattern and its answer are about one. */
function consultEdited(context: SessionContext): SessionEvent | null {
  const [path] = context.edited;
  return path === undefined ? null : consult(context, 'file_edited', { path }, path);
}

function consultStep(context: SessionContext, point: 'PreStep' | 'PostStep'): SessionEvent | null {
  const name = openStep(context)?.name ?? '';
  return consult(context, point, stepPayload(context, point), stepTarget(context, name));
}

function consultEnding(point: EndingPoint): Derivation {
  return (context) => consult(context, point, endingPayload(context, point, stopReason(context)));
}
