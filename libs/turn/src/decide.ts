/**
 * `decide`: admits every input. It says which events an input causes at once, or rejects a command with a catalogued
 * code, or ignores what is late or repeated. What follows from those events is `next`'s affair.
 *
 * D1  The first decision on anything wins; a repetition changes nothing.
 * D2  An outcome counts only for the effect that is open under its id.
 */
import {
  type AssistantMessage,
  assertNever,
  BOUNDS,
  type CallOutcome,
  type CommandInput,
  callsOf,
  cutText,
  type EventOf,
  type HooksChangedInput,
  type Input,
  type JsonObject,
  type ModelOutcome,
  type NotifyOutcome,
  type OwnedInput,
  type Provision,
  type ProvisionOutcome,
  type SessionEvent,
  type SessionFailedInput,
  type StartSettings,
  type UserMessage,
  userText,
} from '@coxswain/protocol';
import { cancelReminder, resultAfterCancel, settleCancelled } from './cancelled-call.ts';
import { type Canceller, nameOf, unseenText } from './canceller.ts';
import { remembered } from './command-memory.ts';
import { decideCompact, decideOverflow, modelFailure, withoutStep } from './compaction.ts';
import type { CallRow, SessionContext } from './context.ts';
import {
  copiedFrom,
  decideAfterCopy,
  decideReprovision,
  isReprovisioning,
  settingsOfPrompt,
} from './copied-session.ts';
import { decideApproval, decideNotice } from './decide-approval.ts';
import { decideCallAccepted, decideCallOutcome } from './decide-call-outcome.ts';
import { decideCancelChild, decideChildEnded, decideMessage, decideStartChild } from './decide-children.ts';
import { decideConsult } from './decide-consult.ts';
import { decideInjection, decideReplace, decideRevoke } from './decide-injections.ts';
import {
  decideResume,
  decideSignal,
  decideSuspend,
  decideTimer,
  parkRequested,
  withoutBadParking,
} from './decide-suspend.ts';
import { because, by, type Decision, events, late, why } from './decision.ts';
import { withEditedFiles } from './edited-files.ts';
import { openEffectIds } from './effects.ts';
import { decideFeedback } from './feedback.ts';
import { decideHandoff, handsOver } from './handoff.ts';
import { decideFeedbackCommand } from './jobs.ts';
import { MACHINE_VERSION } from './machine-versions.ts';
import { ended, unstartedRun } from './next.ts';
import { decidePersonaStep } from './persona-waits.ts';
import * as q from './queries.ts';
import { controlOutcome, reject, withOutcome } from './rejection.ts';
import { decideForget, personaRulesChanged } from './remembered.ts';
import { isEnded, type SessionState, topStateOf } from './state.ts';
import { stepFails } from './steps.ts';
import { decideStop, textStop } from './stop-conditions.ts';
import { askAboutUnknown, asksAboutUnknown } from './unknown-outcome.ts';

/** Decides one input of a record that is made at `atMs`, milliseconds since 1970. Pure. */
export function decide(state: SessionState, input: Input, atMs: number): Decision {
  switch (input.type) {
    case 'command':
      return decideCommand(state, input, atMs);
    case 'provision_outcome':
      return decideProvision(state.context, input);
    case 'model_outcome':
      return decideModel(state.context, input);
    case 'compact_outcome':
      return decideCompact(state.context, input);
    case 'call_outcome':
      return withEditedFiles(
        input,
        decideCall(state.context, withRealDuration(state.context, withoutBadParking(state.context, input, atMs), atMs)),
      );
    case 'call_accepted':
      return decideCallAccepted(state.context, input);
    case 'consult_outcome':
      return decideConsult(state.context, input, atMs);
    case 'close_outcome':
      if (state.context.closing?.id !== input.effect_id) return late(input.effect_id);
      return events({ type: 'tools_closed', effect_id: input.effect_id, notes: input.notes });
    case 'stop_outcome':
      return decideStop(state.context, input);
    case 'notify_outcome':
      return decideNotified(state.context, input);
    case 'notice_outcome':
      return decideNotice(state.context, input);
    case 'owned':
      return decideOwned(state, input);
    case 'hooks_changed':
      return decideHooksChanged(state, input);
    case 'feedback':
      return decideFeedback(state.context, input);
    case 'persona_step':
      return decidePersonaStep(state.context, input);
    case 'session_failed':
      return decideSessionFailed(state, input);
    case 'timer':
      return decideTimer(state, input);
    default:
      return assertNever(input);
  }
}

// ---- commands ----

function decideCommand(state: SessionState, input: CommandInput, atMs: number): Decision {
  const { context } = state;
  const previously = remembered(context, input.command_id);
  if (previously !== undefined) return { kind: 'ignored', reason: 'repeated command', previously };
  if (context.run === 0 && input.verb !== 'start' && input.verb !== 'start_child' && !input.problem)
    return reject(input, 'session_not_found', 'there is no such session');
  return withOutcome(context.session_id, input, decideVerb(state, input, atMs));
}

function decideVerb(state: SessionState, input: CommandInput, atMs: number): Decision {
  const { context } = state;
  if (isTooOld(context, input.command_id)) {
    return reject(
      input,
      'command_too_old',
      `the id ${input.command_id} is older than the last ${BOUNDS.commandIdsRemembered} command ids, which the session remembers`,
    );
  }
  if (input.problem) return reject(input, input.problem.code, input.problem.message, { field: input.problem.field });
  switch (input.verb) {
    case 'start':
      return decidePrompt(state, input);
    case 'prompt':
      return input.body.if_running === 'steer' ? decideSay(state, input, atMs) : decidePrompt(state, input);
    case 'steer':
    case 'remind':
    case 'followup':
      return decideInjection(context, input, atMs);
    case 'approve':
      return decideApproval(state, input, atMs);
    case 'cancel':
      return decideCancel(state, input);
    case 'cancel_call':
      return decideCancelCall(state, input);
    case 'call_outcome':
      return decideCallOutcome(state, input, decideCall);
    case 'start_child':
      return decideStartChild(state, input);
    case 'cancel_child':
      return decideCancelChild(state, input);
    case 'child_ended':
      return decideChildEnded(state, input, atMs, decideCall);
    case 'message':
      return decideMessage(state, input, atMs);
    case 'feedback':
      return decideFeedbackCommand(context, input);
    case 'suspend':
      return decideSuspend(state, input, atMs);
    case 'resume':
      return decideResume(state, input);
    case 'revoke':
      return decideForget(context, input, atMs) ?? decideRevoke(context, input);
    case 'replace':
      return decideReplace(context, input);
    case 'signal':
      return decideSignal(state, input);
    case 'delete':
      return decideDelete(state, input);
    default:
      return reject(input, 'not_yet_available', `this release does not support ${input.verb} yet`, { field: 'verb' });
  }
}

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

// UUIDv7s sort by time (RFC 9562 5.7): one below the oldest that is remembered may be a repetition of a forgotten one.
function isTooOld(context: SessionContext, commandId: string): boolean {
  if (context.command_ids.length < BOUNDS.commandIdsRemembered || !UUID_V7.test(commandId)) return false;
  const oldest = context.command_ids.find((entry) => UUID_V7.test(entry.slice(0, 36)));
  // Capitals are as good a spelling, and sort otherwise.
  return oldest !== undefined && commandId.toLowerCase() < oldest.slice(0, 36).toLowerCase();
}

function decidePrompt(state: SessionState, input: CommandInput): Decision {
  const { context } = state;
  if (!isEnded(state))
    return reject(input, 'session_busy', `the session is ${topStateOf(state)}; ${insteadOfAPrompt(state)}`);
  // Its answer is read from its last run's.
  if (context.notice)
    return reject(
      input,
      'session_busy',
      'the session is reporting its end to its parent; retry the prompt in a moment',
    );
  if (input.verb === 'start' && context.run > 0)
    return reject(input, 'session_exists', 'the session already had a run; continue it with prompt, or use another id');
  // What a host has not put into the copy of its origin's first record, it has not looked at.
  if (input.body.fork !== undefined)
    return reject(input, 'fork_origin_not_found', 'the host did not look up the session to fork', { field: 'fork' });
  const { prompt, messages, message_id: _, ...settings } = input.body;
  const text = input.verb === 'start' ? prompt : input.body.body;
  const changed = input.verb === 'prompt' ? settingsOfPrompt(input) : [];
  return events(...copiedFrom(input), ...changed, {
    type: 'prompt_received',
    command_id: input.command_id,
    run: context.run + 1,
    messages: typeof text === 'string' ? [userText(text)] : (messages as unknown as UserMessage[]),
    ...by(input),
    ...(input.verb === 'start' ? { settings: settings as unknown as StartSettings } : {}),
  });
}

/**
 * A prompt that becomes a steer during a run. The run delivers nothing more once it is torn down: the text is then the prompt of the
 * next run, which begins by itself.
 */
function decideSay(state: SessionState, input: CommandInput, atMs: number): Decision {
  const { context } = state;
  if (isEnded(state) && !context.notice) return decidePrompt(state, input);
  const { body } = input.body;
  const isTooLate = isEnded(state) || topStateOf(state) === 'tearing_down';
  const as: { verb: string; body: JsonObject } = isTooLate
    ? { verb: 'followup', body: { body: body as string, begins_run: true } }
    : { verb: 'steer', body: { body: body as string, mode: 'finish_step' } };
  return decideInjection(context, { ...input, ...as }, atMs);
}

// A message alone does not wake what sleeps, but for an interrupt.
function insteadOfAPrompt(state: SessionState): string {
  return topStateOf(state) === 'suspended'
    ? 'resume it, or interrupt it with a steer'
    : 'steer it or queue a follow-up';
}

/**
 * Nothing follows from a deletion in the journal, which it ends: whoever hosts the session puts the tombstone there, and
 * asks nobody's leave here but whether a run is on.
 */
function decideDelete(state: SessionState, input: CommandInput): Decision {
  if (!isEnded(state))
    return reject(input, 'session_busy', `the session is ${topStateOf(state)}; cancel its run, then delete it`);
  // What is still told to hooks after the end would come back to a session that is not there.
  if (openEffectIds(state).length > 0)
    return reject(
      input,
      'session_busy',
      'work after the end of the run is still in progress; retry the deletion in a moment',
    );
  return { kind: 'ignored', reason: 'deleted by its host', deletes: true };
}

function decideCancel(state: SessionState, input: CommandInput): Decision {
  const { context } = state;
  const cancelled = context.stop_reason === 'cancelled';
  if (isEnded(state)) {
    return cancelled
      ? reject(input, 'already_cancelled', 'the run was already cancelled')
      : reject(input, 'not_running', 'the session is not running');
  }
  return events({
    ...controlOutcome(context.session_id, input, cancelled ? 'already_cancelled' : 'cancelled'),
    ...why(cancelled ? context.cancel_reason : input.body.reason),
  });
}

const unrunText = (row: CallRow, { who, reason }: Canceller) =>
  row.in_doubt
    ? `Cancelled by ${who}${because(reason)}. The outcome of this tool call is unknown: an earlier host ended while the call ran.`
    : `Cancelled by ${who} before it was run${because(reason)}.`;

function decideCancelCall(state: SessionState, input: CommandInput): Decision {
  const { context } = state;
  const callId = input.body.call_id as string;
  const row = isEnded(state) ? undefined : q.callRow(context, callId);
  const outcome = (status: 'cancelled' | 'already_cancelled' | 'not_found', reason: unknown): SessionEvent => ({
    ...controlOutcome(context.session_id, input, status),
    ...(row ? { tool: row.tool } : {}),
    ...why(reason),
  });
  if (!row) return events(outcome('not_found', undefined));
  if (row.cancel) return events(outcome('already_cancelled', row.cancel.reason));
  if (row.status === 'ended')
    return events(outcome(row.ended === 'cancelled' ? 'already_cancelled' : 'not_found', undefined));
  const reason = input.body.reason as string | undefined;
  const injects = input.body.inject_reminder as boolean;
  // What the outside world holds must let go of it first: the tool, or the hooks that look at its result.
  const isBeingSeen = row.status === 'returned' && context.consult?.call_id === callId;
  if (row.status === 'running' || isBeingSeen) {
    return events({
      type: 'call_cancel_requested',
      call_id: callId,
      command_id: input.command_id,
      ...why(reason),
      ...by(input),
      inject_reminder: injects,
      timeout_ms: input.body.timeout_ms as number,
    });
  }
  const canceller = { who: nameOf(input.actor), reason };
  return events(
    ...(row.status === 'parked'
      ? [{ type: 'approval_decided', call_id: callId, decision: 'superseded' } as const]
      : []),
    ended(row, 'cancelled', row.status === 'returned' ? unseenText(canceller) : unrunText(row, canceller)),
    outcome('cancelled', reason),
    ...(injects ? [cancelReminder(context, row, { command_id: input.command_id, actor: input.actor, reason })] : []),
  );
}

// ---- outcomes ----

function decideProvision(context: SessionContext, outcome: ProvisionOutcome): Decision {
  if (isReprovisioning(context)) return decideReprovision(context, outcome, (ok) => changesOf(context, ok.provision));
  const handing = handsOver(context, outcome.effect_id);
  if (handing) return decideHandoff(context, handing, outcome, (ok) => changesOf(context, ok.provision), decideCall);
  if (context.provision?.id !== outcome.effect_id) return late(outcome.effect_id);
  if (context.aborting) return events(unstartedRun(context));
  if (outcome.status !== 'ok') {
    const error =
      outcome.status === 'failed'
        ? outcome.error
        : { code: 'provision_failed', message: 'provisioning was interrupted' };
    return events({ type: 'run_failed', source: 'provisioning', error, stop_reason: 'error' });
  }
  const { provision } = outcome;
  const { fingerprints } = provision;
  return events(...changesOf(context, provision), {
    type: 'agent_start',
    run: context.run,
    machine_version: MACHINE_VERSION,
    persona: provision.persona.name,
    model: provision.model.name,
    fingerprints: { persona: fingerprints.persona, prompt: fingerprints.prompt, tools: fingerprints.tools },
  });
}

function changesOf(context: SessionContext, provision: Provision): SessionEvent[] {
  const { fingerprints } = provision;
  const { tools, hooks, price, remembered, ...rest } = provision;
  const list: SessionEvent[] = [];
  const pinned = context.pinned;
  if (pinned?.persona_fingerprint !== fingerprints.persona || pinned.prompt_fingerprint !== fingerprints.prompt) {
    list.push({ type: 'persona_changed', fingerprint: fingerprints.persona, provision: rest });
  }
  if (pinned?.tools_fingerprint !== fingerprints.tools)
    list.push({ type: 'tools_changed', fingerprint: fingerprints.tools, tools });
  if (pinned?.hooks_fingerprint !== fingerprints.hooks)
    list.push({ type: 'hooks_changed', fingerprint: fingerprints.hooks, table: hooks });
  list.push(...personaRulesChanged(context, remembered));
  const priceFingerprint = fingerprints.price ?? '';
  if ((pinned?.price_fingerprint ?? '') !== priceFingerprint)
    list.push({ type: 'prices_changed', fingerprint: priceFingerprint, price: price ?? null });
  return list;
}

function decideModel(context: SessionContext, outcome: ModelOutcome): Decision {
  if (context.model?.id !== outcome.effect_id) return late(outcome.effect_id);
  const overflowed = decideOverflow(context, outcome);
  if (overflowed) return overflowed;
  const whole = outcome.status === 'complete' && !outcome.message.partial && !context.aborting;
  const message: AssistantMessage = whole
    ? withUniqueCallIds(outcome.message)
    : { role: 'assistant', content: outcome.message.content.filter((part) => part.type !== 'call'), partial: true };
  const answer: SessionEvent = {
    type: 'message_complete',
    turn: context.turn,
    message,
    finish_reason: outcome.finish_reason,
    usage: outcome.usage,
    body_streamed: outcome.body_streamed,
    duration_ms: outcome.duration_ms,
    attempts: outcome.attempts,
    ...(whole && outcome.output ? { output: outcome.output } : {}),
  };
  if (whole) return events(answer, ...textStop(context, message));
  if (context.aborting || context.model.preempted) return events(answer);
  const error = modelFailure(context, outcome);
  const failed: EventOf<'run_failed'> = { type: 'run_failed', source: 'model', error, stop_reason: 'error' };
  const list = stepFails(context, error, failed) ?? [failed];
  // An answer of which nothing had arrived is no answer.
  return message.content.length > 0 ? events(answer, ...list) : events(...list);
}

// Results are paired with calls by id, so an id that a model gives twice in one answer becomes two.
function withUniqueCallIds(message: AssistantMessage): AssistantMessage {
  const calls = callsOf(message);
  const ids = new Set(calls.map((call) => call.call_id));
  if (ids.size === calls.length) return message;
  const seen = new Set<string>();
  return {
    ...message,
    content: message.content.map((part) => {
      if (part.type !== 'call') return part;
      let id = part.call_id;
      for (let i = 2; seen.has(id) || (id !== part.call_id && ids.has(id)); i++)
        id = `${cutText(part.call_id, 240)}_${i}`;
      seen.add(id);
      return id === part.call_id ? part : { ...part, call_id: id };
    }),
  };
}

function decideCall(context: SessionContext, outcome: CallOutcome): Decision {
  const row = q.callRow(context, outcome.call_id);
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
  if (outcome.status === 'interrupted' && asksAboutUnknown(context, row)) return events(askAboutUnknown(context, row));
  // A child may have been cancelled where it runs. No other call is cancelled but by a person, a parent or the host.
  const isOfChild = context.children.some(({ effect_id }) => effect_id === outcome.effect_id);
  const isCancelledByTool = outcome.status === 'cancelled' && !isOfChild;
  const { status, result } = agreeing(isCancelledByTool ? { ...outcome, status: 'error' } : outcome);
  if (q.hooksFor(context, 'PostToolUse', row.tool).length > 0) {
    const park = outcome.park ? { park: outcome.park } : {};
    return events({ type: 'call_returned', call_id: row.call_id, status, result, duration_ms, ...park });
  }
  return events(
    { ...head, status, result, is_error: status !== 'ok', ...timedOut },
    ...parkRequested(context, outcome),
  );
}

/**
 * The outcome of a call that the host gave up measures nothing: no worker sent it. Its duration is the time since the
 * record that started it.
 */
function withRealDuration(context: SessionContext, outcome: CallOutcome, atMs: number): CallOutcome {
  if (outcome.status !== 'cancelled' || outcome.duration_ms > 0) return outcome;
  const startedMs = q.callRow(context, outcome.call_id)?.started_at_ms ?? atMs;
  return { ...outcome, duration_ms: Math.max(0, atMs - startedMs) };
}

// Tools say twice whether they failed, by status and by flag; either is enough.
function agreeing({ status, result }: CallOutcome): Pick<CallOutcome, 'status' | 'result'> {
  const failed = status !== 'ok' || result.is_error;
  return {
    status: status === 'ok' && failed ? 'error' : status,
    result: result.is_error === failed ? result : { ...result, is_error: failed },
  };
}

function decideNotified(context: SessionContext, outcome: NotifyOutcome): Decision {
  if (context.notice?.id !== outcome.effect_id || !context.parent) return late(outcome.effect_id);
  const { effect_id, error } = outcome;
  return events({
    type: 'parent_notified',
    effect_id,
    session: context.parent.session,
    ...(error ? { error } : {}),
  });
}

// ---- hosts ----

function decideOwned(state: SessionState, input: OwnedInput): Decision {
  const { context } = state;
  if (input.epoch <= context.epoch)
    return { kind: 'ignored', reason: `epoch ${input.epoch} is not after ${context.epoch}` };
  if (input.after_copy) return decideAfterCopy(state, input);
  const owned: SessionEvent = { type: 'owned', epoch: input.epoch, host: input.host };
  const { compacting, model, pass } = context;
  if (compacting && pass && compacting.restarts + 1 > BOUNDS.modelRestartsMax && !context.aborting) {
    const message = `the summary was restarted ${BOUNDS.modelRestartsMax} times, each time because its host ended`;
    return events(owned, ...withoutStep(context, pass, { code: 'model_restarts_exhausted', message }));
  }
  if (!model || model.restarts + 1 <= BOUNDS.modelRestartsMax || context.aborting || model.preempted)
    return events(owned);
  const message = `the model call was restarted ${BOUNDS.modelRestartsMax} times, each time because its host ended`;
  return events(owned, {
    type: 'run_failed',
    source: 'model',
    error: { code: 'model_restarts_exhausted', message },
    stop_reason: 'error',
  });
}

/** Between runs nobody reads the table, and a run's first one comes with its provision. */
function decideHooksChanged(state: SessionState, { fingerprint, table }: HooksChangedInput): Decision {
  const { context } = state;
  if (isEnded(state) || !context.run_started) return { kind: 'ignored', reason: 'no run is active' };
  if (context.pinned?.hooks_fingerprint === fingerprint) return { kind: 'ignored', reason: 'unchanged hook table' };
  return events({ type: 'hooks_changed', fingerprint, table });
}

function decideSessionFailed(state: SessionState, input: SessionFailedInput): Decision {
  if (isEnded(state)) return { kind: 'ignored', reason: 'the run has ended' };
  return events({ type: 'run_failed', source: 'session', error: input.error, stop_reason: 'error' });
}
