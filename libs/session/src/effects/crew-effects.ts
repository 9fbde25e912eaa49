/**
 * Effects of one session on another: commands in its inbox, and a child's progress for watchers of its parent.
 *
 * CREW-1  A command that is sent twice is applied once: its id derives from the effect that sends it. The id of a
 *         report derives from the child's id, because a child reports once.
 * CREW-2  A command is sent again until the store takes or refuses it, or the signal of its effect aborts. A refused
 *         start or message ends with an error. A refused cancel or report is repeated: no other component sends it.
 */
import type { Publisher, SpanSink } from '@coxswain/ports';
import {
  type AssistantMessage,
  addUsage,
  type BackOff,
  BOUNDS,
  type CallAccepted,
  type CallOutcome,
  type CancelChildBody,
  type ChildEndedBody,
  type CrewVerb,
  ceilingBelow,
  cutText,
  delayAfter,
  type Failure,
  type Input,
  type JsonObject,
  type MessageBody,
  messageProblem,
  type ParentLink,
  type ParentReportOutcome,
  type PinnedPermissions,
  parseCrewCommand,
  type SessionEvent,
  type SessionRef,
  type StartChildBody,
  type StopReason,
  sessionRef,
  textOf,
  tombstoneIn,
  usdOf,
} from '@coxswain/protocol';
import { remindersForChild, type SessionState, type WorkEffect } from '@coxswain/turn';
import { sha256Hex } from '../journal/append-record.ts';
import { readRecord } from '../journal/load-session.ts';
import { traceForChild } from '../trace/trace-ids.ts';
import { tracedSession } from '../trace/work-context.ts';
import type { Transcript } from '../view/transcript.ts';
import { type ChosenPersona, chosenPersona } from './find-persona.ts';
import { errorOutcome } from './run-tool-call.ts';
import { POLICY_CEILING, rulesOfSession } from './session-rules.ts';
import type { WorkerPorts } from './session-worker.ts';
import { retryingBlobs, untilAnswered } from './until-answered.ts';

/** The session that acts, with its state at the start of the effect. */
export interface CrewSession {
  readonly ref: SessionRef;
  readonly state: SessionState;
  readonly transcript: Transcript;
}

type Of<K extends WorkEffect['kind']> = Extract<WorkEffect, { kind: K }>;

/**
 * Starts a child: checks that the id is free, finds its persona, checks the body of the start and the quota, then sends the
 * start command. If the child has a record, repeats its start without these checks. If the child cannot start, and an earlier
 * owner of the session may have sent its start, cancels the child: without its call it would run in vain.
 * @param traceparent the span of the call that starts the child.
 * @returns `call_accepted` once the command is stored; an error outcome if the child cannot start. After an abort
 *   either of them, because then no component reads the result.
 */
export async function startChild(
  ports: WorkerPorts,
  session: CrewSession,
  effect: Of<'start_child'>,
  signal: AbortSignal,
  traceparent?: string,
): Promise<CallAccepted | CallOutcome> {
  const { id: effect_id, callId: call_id, child } = effect;
  const { ref, state } = session;
  const failed = ({ code, message }: Failure): CallOutcome => {
    const { result } = errorOutcome('error', message, code);
    return { type: 'call_outcome', effect_id, call_id, status: 'error', result, duration_ms: 0 };
  };
  const to = sessionRef(child.session, ref.tenant);
  // An earlier owner may have started the child. Then this host need not be able to start it: its personas and the quota
  // may differ by now. The repetition of the start wakes a child that rests.
  const started = await recordedStart(ports, to, { session: ref.sessionId, effect_id }, signal);
  const start = started ?? (await newStart(ports, session, effect, signal));
  if ('code' in start) {
    if (!started && effect.epoch < state.context.epoch) await cancelChild(ports, ref, effect, start.message, signal);
    return failed(start);
  }
  const payload = encode(start.body);
  const refused = await sendUntilStored(
    ports,
    ref,
    to,
    'start_child',
    payload,
    `start-${effect_id}`,
    signal,
    traceparent,
  );
  if (refused)
    return failed({ code: 'child_not_started', message: `the child session was not started: ${refused.message}` });
  return { type: 'call_accepted', effect_id, call_id, epoch: state.context.epoch };
}

/** The body of a child's start, or why the child cannot be started. */
type ChildStart = { readonly body: object } | Failure;

/** Finds the persona of a child, and checks the body of its start and the quota. */
async function newStart(
  ports: WorkerPorts,
  session: CrewSession,
  effect: Of<'start_child'>,
  signal: AbortSignal,
): Promise<ChildStart> {
  const { ref, state, transcript } = session;
  const own = { persona: transcript.frame.persona, ofStart: state.context.settings?.personas ?? [] };
  const persona = await untilAnswered(ports.clock, signal, () =>
    chosenPersona(ports, ref.tenant, own, effect.args.persona),
  ).catch((error: Error) => error);
  // The signal has aborted, so no component reads this outcome.
  if (!persona) return { code: 'child_not_started', message: 'the child session was not started' };
  if (persona instanceof Error)
    return { code: 'child_not_started', message: `the child session was not started: ${persona.message}` };
  if ('code' in persona) return persona;
  const body = startOf(session, effect, persona, ports.telemetry?.spans);
  const read = parseCrewCommand('start_child', encode(body));
  if (!read.ok)
    return { code: read.problem.code, message: `the child session cannot be started: ${read.problem.message}` };
  const full = ports.quotas?.sessionProblem(ref.tenant);
  if (full) return { code: 'quota_exceeded', message: `the child session was not started: ${full.message}` };
  return { body };
}

/**
 * The body of a child's start: what the child gets from the call, and what it inherits from its parent: limits, model, root,
 * personas, restriction, permission ceiling, reminders, hops and trace.
 */
function startOf(
  { ref, state, transcript }: CrewSession,
  effect: Of<'start_child'>,
  persona: ChosenPersona,
  spans: SpanSink | null | undefined,
): StartChildBody {
  const { context } = state;
  const { settings, pinned, parent } = context;
  const { args, child } = effect;
  const frame = transcript.frame.persona;
  const { model } = persona.definition;
  const { tokens = args.limits?.tokens, nano_usd } = child;
  const usd = nano_usd === undefined ? args.limits?.usd : usdOf(nano_usd);
  const limits = {
    ...args.limits,
    ...(tokens === undefined ? {} : { tokens }),
    ...(usd === undefined ? {} : { usd }),
  };
  const link: ParentLink = {
    session: ref.sessionId,
    call_id: effect.callId,
    effect_id: effect.id,
    epoch: context.epoch,
    turn: context.turn,
    root: parent?.root ?? ref.sessionId,
    depth: (parent?.depth ?? 0) + 1,
    depth_left: Math.max(0, (pinned?.delegation?.depth ?? 1) - 1),
    hops: context.hops,
    ceiling: pinned ? ceilingBelow(ref.sessionId, withoutPolicy(pinned.permissions)) : [],
  };
  return {
    prompt: args.prompt,
    persona: persona.reference,
    // A child whose persona has no model gets the name and address of its parent's model.
    ...(model === undefined && frame ? modelOf(frame.model) : {}),
    ...(args.mode === undefined ? {} : { mode: args.mode }),
    ...(Object.keys(limits).length > 0 ? { limits } : {}),
    ...(settings?.personas ? { personas: settings.personas } : {}),
    ...(settings?.restricted ? { restricted: true as const } : {}),
    ...(frame ? { root: frame.root } : {}),
    trace: traceForChild(tracedSession(ref, state, spans), context.run),
    parent: link,
    reminders: [...remindersForChild(context).reminders],
  };
}

/** The permissions without the ceiling of the host's policy: the child's host adds its own. */
function withoutPolicy({ ceiling = [], ...own }: PinnedPermissions): PinnedPermissions {
  return { ...own, ceiling: ceiling.filter(({ session }) => session !== POLICY_CEILING) };
}

/** The name and the address of a model, as members of a start command. */
export function modelOf({ name, base_url }: { readonly name: string; readonly base_url?: string | undefined }) {
  return { model: name, ...(base_url === undefined ? {} : { base_url }) };
}

/**
 * The start in the first record of a child; null if it has none. The failure if another session has its id, or if its journal
 * cannot be read.
 */
async function recordedStart(
  ports: WorkerPorts,
  child: SessionRef,
  { session, effect_id }: Pick<ParentLink, 'session' | 'effect_id'>,
  signal: AbortSignal,
): Promise<ChildStart | null> {
  const stranger = { code: 'session_exists', message: `another session already has the id ${child.sessionId}` };
  let input: Input;
  try {
    const first = await untilAnswered(ports.clock, signal, () => ports.journal.firstAfter(child, 0));
    if (!first) return null;
    if (tombstoneIn(first.bytes)) return stranger;
    ({ input } = await readRecord(first.bytes, retryingBlobs(ports.blobs, ports.clock, signal)));
  } catch (error) {
    // Repeating does not help: the record is damaged, of a later release or without its blobs, or the signal aborted.
    const message = `the child session was not started: the journal of ${child.sessionId} cannot be read: ${(error as Error).message}`;
    return { code: 'child_not_started', message };
  }
  if (input.type !== 'command') return stranger;
  const parent = input.body.parent as Partial<ParentLink> | undefined;
  return parent?.session === session && parent.effect_id === effect_id ? { body: input.body } : stranger;
}

/** Sends the child a cancel command, then waits the grace period. The child's report aborts `signal` and the wait. */
export async function stopChild(
  ports: WorkerPorts,
  { ref }: CrewSession,
  effect: Of<'stop_child'>,
  signal: AbortSignal,
): Promise<void> {
  const { reason, graceMs } = effect.order;
  await cancelChild(ports, ref, effect, reason, signal);
  await ports.clock.sleep(graceMs, signal);
}

/** Sends a child a cancel command. Ends when the command is stored, or after an abort. */
async function cancelChild(
  ports: WorkerPorts,
  ref: SessionRef,
  { id, child }: Of<'start_child' | 'stop_child'>,
  why: string,
  signal: AbortSignal,
): Promise<void> {
  // A UTF-16 unit has at most three bytes in UTF-8, so a quarter of the bound in units certainly fits.
  const reason = cutText(why, BOUNDS.reasonMaxBytes / 4);
  const body: CancelChildBody = { from: ref.sessionId, effect_id: id, reason };
  const to = sessionRef(child.session, ref.tenant);
  await sendDespiteRefusals(ports, ref, to, 'cancel_child', encode(body), `cancel-${id}`, signal);
}

/** Sends the report on the child's first run to its parent. Ends when the report is stored, or after an abort. */
export async function notifyParent(
  ports: WorkerPorts,
  { ref, state, transcript }: CrewSession,
  { id, parent }: Of<'notify_parent'>,
  signal: AbortSignal,
): Promise<ParentReportOutcome> {
  // Built before the command is sent: a next run can change the transcript meanwhile.
  const payload = encode(reportOf(ref, state, transcript, parent));
  const to = sessionRef(parent.session, ref.tenant);
  // The id of a child has 32 characters (`childIdOf`), so this is a valid id of a command.
  await sendDespiteRefusals(ports, ref, to, 'child_ended', payload, `ended-${ref.sessionId}`, signal);
  return { type: 'notify_outcome', effect_id: id };
}

const ANSWERS: ReadonlySet<StopReason> = new Set(['end_turn', 'terminated', 'stop_condition']);

function reportOf(
  ref: SessionRef,
  { context }: SessionState,
  transcript: Transcript,
  parent: ParentLink,
): ChildEndedBody {
  const stop_reason = context.stop_reason ?? 'error';
  const isAnswer = ANSWERS.has(stop_reason);
  const said = answerText(transcript.answered.last);
  const { failure, cancel_reason, spent_by_children: spent } = context;
  const why = failure?.message ?? cancel_reason;
  const head = `Session ${ref.sessionId} returned no answer. Its run ended with ${stop_reason}${why ? `: ${why}` : '.'}`;
  const text = isAnswer
    ? said || '(The session ended without a text answer.)'
    : said
      ? `${head}\n\nIts last text:\n${said}`
      : head;
  const detail: JsonObject = { session: ref.sessionId, stop_reason, ...(isAnswer ? {} : { code: 'child_failed' }) };
  return {
    session: ref.sessionId,
    effect_id: parent.effect_id,
    status: isAnswer ? 'ok' : stop_reason === 'cancelled' ? 'cancelled' : 'error',
    stop_reason,
    result: { content: [{ type: 'text', text }], is_error: !isAnswer, detail },
    turns: context.turn,
    usage: addUsage(context.total_usage, spent.usage),
    nano_usd: context.total_cost === null || spent.nano_usd === null ? null : context.total_cost + spent.nano_usd,
    ...(failure ? { error: failure } : {}),
  };
}

function answerText(answer: AssistantMessage | null): string {
  const text = answer ? textOf(answer) : '';
  // `cutText` counts UTF-16 units. The bound counts four bytes for each, so 128 KiB are 32,768 units. A unit takes at most
  // six bytes in JSON. So the answer has at most 192 KiB as JSON, and fits into a command of 256 KiB.
  const max = BOUNDS.childAnswerMaxBytes / 4;
  const shown = cutText(text, max);
  return shown === text
    ? text
    : `${shown}\n[… ${text.length - shown.length} more characters in the journal of the session]`;
}

/**
 * Sends a message to another session. The outcome is `ok` once the message is stored, and `cancelled` if the signal
 * aborts. It is `error` if the host's policy forbids the message, if the receiver does not exist or its journal cannot
 * be read, or if the message is invalid or refused.
 */
export async function sendMessage(
  ports: WorkerPorts,
  { ref, state }: CrewSession,
  { id: effect_id, callId: call_id, epoch, args, hops }: Of<'send_message'>,
  signal: AbortSignal,
): Promise<CallOutcome> {
  const ended = (status: CallOutcome['status'], text: string, code?: string): CallOutcome => ({
    type: 'call_outcome',
    effect_id,
    call_id,
    status,
    result:
      code === undefined
        ? { content: [{ type: 'text', text }], is_error: false }
        : errorOutcome('error', text, code).result,
    duration_ms: 0,
  });
  const { mode = 'steer' } = args;
  // The policy and the receiver can have changed since an earlier owner sent the message.
  const mayBeSent = epoch < state.context.epoch;
  const unsent = mayBeSent ? 'An earlier host of this session may have sent the message' : 'The message was not sent';
  const forbidden = messageProblem(rulesOfSession(ports, ref.tenant, state.context.settings), mode);
  if (forbidden) return ended('error', `${unsent}. ${forbidden.message}`, forbidden.code);
  const to = sessionRef(args.to, ref.tenant);
  const last = await untilAnswered(ports.clock, signal, () => ports.journal.last(to)).catch((error: Error) => error);
  if (last instanceof Error) {
    const text = `${unsent}: the journal of ${args.to} cannot be read: ${last.message}`;
    return ended('error', text, 'tool_failed');
  }
  if (!signal.aborted && (!last || tombstoneIn(last.bytes)))
    return ended('error', `There is no session ${args.to}. ${unsent}.`, 'session_not_found');
  const body: MessageBody = { from: ref.sessionId, hops, body: args.body, mode };
  const payload = encode(body);
  const read = parseCrewCommand('message', payload);
  if (!read.ok) return ended('error', `The message was not sent: ${read.problem.message}`, read.problem.code);
  const refused = await sendUntilStored(ports, ref, to, 'message', payload, messageId(ref, effect_id), signal);
  if (refused) return ended('error', `${unsent}: ${refused.message}`, 'tool_failed');
  if (signal.aborted) return ended('cancelled', 'Cancelled. The message may have been sent.', 'tool_interrupted');
  return ended('ok', `The message is stored for session ${args.to}.`);
}

// A receiver gets messages from several senders, whose effect ids can be equal: the sender is part of the hash.
function messageId({ sessionId }: SessionRef, effectId: string): string {
  return `msg-${sha256Hex(`${sessionId}/${effectId}`).slice(0, 32)}`;
}

/**
 * Publishes the progress of a child for watchers of the parent's call: one small message for each turn, started call
 * and requested approval in the events of record `n`. Only in the child's first run, and not for a detached child.
 */
export function publishProgress(
  publisher: Publisher,
  ref: SessionRef,
  { context }: SessionState,
  n: number,
  events: readonly SessionEvent[],
): void {
  const { parent } = context;
  if (!parent || parent.detached || context.run !== 1) return;
  for (const [at, event] of events.entries()) {
    const text = progressText(context.pinned?.persona ?? 'child', event);
    if (text === null) continue;
    publisher.delta(sessionRef(parent.session, ref.tenant), {
      type: 'message_update',
      session_id: parent.session,
      effect_id: parent.effect_id,
      epoch: parent.epoch,
      attempt: 1,
      turn: parent.turn,
      index: n * 4_096 + at,
      kind: 'progress',
      offset: 0,
      text,
      call_id: parent.call_id,
      tool: 'delegate',
    });
  }
}

function progressText(persona: string, event: SessionEvent): string | null {
  if (event.type === 'call_started') return `${persona}: ${event.tool}`;
  if (event.type === 'approval_requested') return `${persona}: ${event.tool} waits for approval`;
  return event.type === 'turn_start' ? `${persona}: turn ${event.turn}` : null;
}

// ---- sending ----

const RESENDS: BackOff = { firstMs: BOUNDS.crewResendMs, maxMs: BOUNDS.crewResendMaxMs };

/** Sends a command until it is stored or refused, or the signal aborts. @returns why it was refused; otherwise null. */
async function sendUntilStored(
  ports: WorkerPorts,
  from: SessionRef,
  to: SessionRef,
  verb: CrewVerb,
  payload: Uint8Array,
  commandId: string,
  signal: AbortSignal,
  traceparent?: string,
): Promise<Failure | null> {
  for (let failures = 1; !signal.aborted; failures++) {
    try {
      await ports.sender.send(to, verb, payload, { commandId, ...(traceparent === undefined ? {} : { traceparent }) });
      return null;
    } catch (error) {
      const { code = '', message } = error as Error & { code?: string };
      if (REFUSALS.has(code)) return { code, message };
      ports.log.warn(
        { session_id: from.sessionId, to: to.sessionId, verb },
        `command not stored, retrying: ${message}`,
      );
    }
    await ports.clock.sleep(delayAfter(failures, RESENDS), signal);
  }
  return null;
}

const REFUSALS: ReadonlySet<string> = new Set(['nats_request_refused', 'not_permitted']);

async function sendDespiteRefusals(
  ...[ports, from, to, verb, payload, commandId, signal]: Parameters<typeof sendUntilStored>
): Promise<void> {
  for (let failures = 1; !signal.aborted; failures++) {
    const refused = await sendUntilStored(ports, from, to, verb, payload, commandId, signal);
    if (!refused) return;
    ports.log.error({ session_id: from.sessionId, to: to.sessionId, verb, code: refused.code }, refused.message);
    await ports.clock.sleep(delayAfter(failures, RESENDS), signal);
  }
}

function encode(body: object): Uint8Array {
  return Buffer.from(JSON.stringify(body), 'utf8');
}
