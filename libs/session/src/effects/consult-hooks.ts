/**
 * Consults hooks: collects their answers, parses verdicts and bounds their time.
 *
 * The order of the hooks is `inCallOrder` (hook-registrations.ts in libs/protocol). The first refusal or decision ends
 * the chain, and rewrites accumulate. At `gate_tool_calls` only a verdict that allows no call ends it
 * ({@link endsChain}). The machine decides what the answers cause: `decideConsult` (consult-outcome.ts in libs/turn).
 *
 * One consultation asks a hook at most once. If the instance that has the question fails, the adapter of the bus moves the
 * question to another instance, at most three times (hook-questions.ts in libs/adapters/nats; ASK-3 in libs/bus,
 * asking.ts). The answers are recorded together, at the end of the consultation. So after a crash of the host, the next
 * owner asks all its hooks again, with the same effect id.
 */
import type { Clock, HookReply, Hooks } from '@coxswain/ports';
import {
  BOUNDS,
  beyondPersona,
  type ConsultOutcome,
  canonicalJson,
  conditionHolds,
  type HookAnswer,
  type HookFailure,
  type HookPoint,
  type HookRegistration,
  type HookReturn,
  isHookFailure,
  isOfPersona,
  Json,
  type JsonObject,
  type Message,
  pairingProblem,
  parseHookPattern,
  parseReturn,
  type RegexBudget,
  regexBudget,
  returnProblem,
  type SessionRef,
  type ToolDefinition,
  type ToolResult,
  type Verdict,
} from '@coxswain/protocol';
import { argumentsProblem } from '@coxswain/protocol/validate-arguments';
import { failsClosed, rewriteResult, textLength } from '@coxswain/turn';
import { inlineBytes, inlineMaxBytes } from './record-share.ts';

/** One consultation: registrations of one point in the order of calls, and the payload before rewrites. */
export interface Consult {
  readonly ref: SessionRef;
  readonly effectId: string;
  readonly point: HookPoint;
  readonly registrations: readonly HookRegistration[];
  /** Those that had `on_error: fail_open` when the consult was recorded. Their entries may have changed since. */
  readonly failOpen: readonly string[];
  readonly payload: JsonObject;
  /** The tool of a tool point, to validate rewritten arguments. */
  readonly tool: ToolDefinition | undefined;
  /** Whether the tool requires a human approval of a call with rewritten arguments. */
  readonly needsApproval: (args: JsonObject) => Promise<boolean>;
  /** Whether the run is being torn down now. */
  readonly isRunAborting: () => boolean;
  /** The messages that models see now. */
  readonly transcript: () => readonly Message[];
  /** At `transform_context`: the messages of the request. */
  readonly messages?: readonly Message[] | undefined;
  /** The parent span for handlers, if tracing is on. */
  readonly traceparent?: string | undefined;
  /** Receives the text that a handler tells the model besides its verdict. */
  readonly onFeedback: (hook: string, text: string) => void;
}

/**
 * Asks the registrations of a point in order. Each gets the payload as rewritten by the previous ones. A verdict can
 * end the chain ({@link endsChain}), and so can a failure (`failsClosed`). Registrations after this end,
 * after an abort of the signal, or with a condition that does not match ({@link doesNotApply}) have the answer
 * `not_run`. Never rejects. Settles within the sum of the registrations' timeouts, or when the signal aborts. After a
 * valid rewrite of arguments, `needsApproval` is awaited as well.
 */
export async function consultHooks(
  hooks: Pick<Hooks, 'ask'>,
  clock: Clock,
  consult: Consult,
  signal: AbortSignal,
): Promise<ConsultOutcome> {
  const answers: HookAnswer[] = [];
  let payload = consult.payload;
  let ended = false;
  let rewrittenArgs: JsonObject | undefined;
  let { messages } = consult;
  let room = inlineMaxBytes(consult.messages ? VIEW_COPIES : ANSWER_COPIES);
  const budget = regexBudget();
  const recorded = { consult: { point: consult.point, fail_open: consult.failOpen } };
  for (const registration of consult.registrations) {
    if (ended || signal.aborted || doesNotApply(registration, [consult.payload, payload], budget)) {
      answers.push({ hook: registration.id, not_run: true });
      continue;
    }
    const asked = await askOne(hooks, clock, consult, registration, { payload, messages }, signal);
    if (payload !== consult.payload) asked.payload = payload;
    const { answer, bytes } = fitting(asked, registration, room);
    room -= bytes;
    answers.push(answer);
    const { verdict } = answer;
    ended = endsChain(verdict) || failsClosed(recorded, answer);
    if (verdict?.kind === 'rewrite_args') rewrittenArgs = verdict.args;
    if (verdict?.kind === 'replace_messages') messages = shownBy(verdict.messages, consult.messages ?? []);
    payload = payloadAfter(payload, verdict);
  }
  const problem = rewrittenArgs && consult.tool ? argumentsProblem(consult.tool, rewrittenArgs) : null;
  return {
    type: 'consult_outcome',
    effect_id: consult.effectId,
    status: signal.aborted ? 'cancelled' : 'answered',
    answers,
    ...(problem ? { args_problem: { code: 'invalid_call_arguments', message: problem } } : {}),
    ...(rewrittenArgs && !problem && (await consult.needsApproval(rewrittenArgs)) ? { needs_approval: true } : {}),
  };
}

/**
 * Whether to skip a hook of a host or a hook service: its condition matches neither the original payload nor the payload that
 * earlier hooks have rewritten. A hook of a persona is never skipped here.
 * @param budget for the conditions of the whole consult. One that it does not cover counts as true.
 */
export function doesNotApply(
  { pattern, persona_version }: HookRegistration,
  payloads: readonly JsonObject[],
  budget: RegexBudget,
): boolean {
  const parsed = persona_version === undefined ? parseHookPattern(pattern) : null;
  if (parsed === null || typeof parsed === 'string' || parsed.kind !== 'condition') return false;
  return payloads.every((payload) => conditionHolds(parsed.condition, payload, budget) === false);
}

async function askOne(
  hooks: Pick<Hooks, 'ask'>,
  clock: Clock,
  consult: Consult,
  registration: HookRegistration,
  { payload, messages }: { readonly payload: JsonObject; readonly messages: readonly Message[] | undefined },
  signal: AbortSignal,
): Promise<HookAnswer> {
  const { deny, max_output, no_handler, returns } = registration;
  // A registration with a fixed answer (`deny`, `returns`, or `max_output` without a handler) needs no live instance.
  if (deny !== undefined) return { hook: registration.id, verdict: { kind: 'deny', reason: deny } };
  if (no_handler) return { hook: registration.id, verdict: withBound(max_output, { kind: 'no_objection' }, payload) };
  if (returns !== undefined) return answerTo(registration, consult.point, returns, 0, payload, consult.messages);
  if (registration.unavailable) return failed(registration, UNAVAILABLE);
  const bytes = Buffer.byteLength(JSON.stringify(payload), 'utf8');
  if (bytes > BOUNDS.hookPayloadMaxBytes) {
    const message = `not asked: the payload has ${bytes} bytes; the limit is ${BOUNDS.hookPayloadMaxBytes}`;
    return failed(registration, { code: 'hook_unavailable', message });
  }
  const waiting = new AbortController();
  const onFeedback = (text: string) => {
    if (!waiting.signal.aborted) consult.onFeedback(registration.id, text);
  };
  const { ref, effectId, transcript, traceparent } = consult;
  const shown = messages ? { messages } : {};
  const request = { ref, effectId, registration, payload, transcript, onFeedback, traceparent, ...shown };
  const answer = hooks.ask(request, waiting.signal).catch(broken);
  const reply = await boundedBy(clock, registration.timeout_ms, answer, waiting, signal);
  if (reply === 'timeout') {
    return failed(registration, { code: 'hook_timeout', message: whyUnanswered(consult, registration, signal) });
  }
  if (reply.status === 'failed') return failed(registration, { code: reply.code, message: reply.message });
  const raw = jsonOf(reply.raw, consult.messages ? BOUNDS.transformedViewMaxBytes : BOUNDS.hookPayloadMaxBytes);
  if (!raw.ok) return failed(registration, raw.failure);
  return answerTo(registration, consult.point, raw.value, raw.bytes, payload, consult.messages);
}

function whyUnanswered(
  { isRunAborting }: Consult,
  { timeout_ms }: HookRegistration,
  { aborted, reason }: AbortSignal,
): string {
  if (!aborted) return `no answer within ${timeout_ms} ms`;
  return isRunAborting() ? 'the run ended before the hook answered' : `stopped before the hook answered: ${reason}`;
}

async function boundedBy(
  clock: Clock,
  timeoutMs: number,
  answer: Promise<HookReply>,
  waiting: AbortController,
  signal: AbortSignal,
): Promise<HookReply | 'timeout'> {
  // A request over the bus is sent in the first microtask; the timeout must not delay it.
  await Promise.resolve();
  const giveUp = () => waiting.abort(signal.reason);
  signal.addEventListener('abort', giveUp, { once: true });
  if (signal.aborted) giveUp();
  const timeout = clock.sleep(timeoutMs, waiting.signal).then(() => 'timeout' as const);
  const reply = await Promise.race([answer, timeout]);
  signal.removeEventListener('abort', giveUp);
  waiting.abort(NOT_AWAITED);
  return reply;
}

/** Shared, because an abort without a reason captures a stack trace for each request. */
const NOT_AWAITED = new DOMException('this answer is no longer awaited', 'AbortError');

/**
 * Parses a handler's return value into the answer for the hook tape (the answers of hooks in the journal).
 * @param bytes the size of the return as JSON. Above `BOUNDS.hookPayloadMaxBytes` the tape leaves the raw return out.
 * @param payload the payload that the hook got.
 * @param view at `transform_context`: the messages of the request, which the verdict names by index.
 */
export function answerTo(
  registration: HookRegistration,
  point: HookPoint,
  returned: Json | undefined,
  bytes: number,
  payload: JsonObject,
  view: readonly Message[] | undefined,
): HookAnswer {
  const { max_output } = registration;
  const batch = Array.isArray(payload.calls) ? payload.calls.length : undefined;
  const parsed = onTape(parseReturn(point, returned, batch), view);
  // The raw return is left out if it exceeds the bound, or if its verdict has the returned messages (`onTape`).
  const isTooMuch = bytes > BOUNDS.hookPayloadMaxBytes;
  const isRetold = 'verdict' in parsed && parsed.verdict.kind === 'replace_messages';
  const said = returned !== undefined && !isTooMuch && !isRetold ? { raw: returned } : {};
  // A raw return that is nested too deep is left out: its record would be unreadable.
  if (isHookFailure(parsed))
    return { ...failed(registration, parsed), ...(Json.safeParse(returned).success ? said : {}) };
  const { verdict, reminders } = parsed;
  const beyond = isOfPersona(registration) ? beyondPersona(verdict) : null;
  if (beyond) return { ...failed(registration, beyond), ...said };
  return {
    hook: registration.id,
    verdict: max_output === undefined ? verdict : withBound(max_output, verdict, payload),
    ...(reminders.length > 0 ? { reminders: [...reminders] } : {}),
    ...said,
  };
}

const UNAVAILABLE: HookFailure = { code: 'hook_unavailable', message: 'no live instance serves this hook' };

// Adds the registration's bound to the verdict if the result, after the handler's rewrite, is longer than the bound.
function withBound(most: number | undefined, verdict: Verdict, payload: JsonObject): Verdict {
  if (most === undefined) return verdict;
  const rewrite: Extract<Verdict, { kind: 'rewrite_result' }> =
    verdict.kind === 'rewrite_result' ? verdict : { kind: 'rewrite_result' };
  const fits = textLength(rewriteResult(payload.result as unknown as ToolResult, rewrite)) <= most;
  return fits ? verdict : { ...rewrite, max_output: most };
}

// The port must not reject. If it does, this counts as the failure of one hook, and its `on_error` decides.
function broken(error: Error): HookReply {
  return { status: 'failed', code: 'hook_unavailable', message: error.message };
}

/** Copies of an answer in one record: the input, `hook_returned`, and rewritten arguments in two more events. */
const ANSWER_COPIES = 4;
/** Copies of an answer with messages in one record: the input and `hook_returned`. */
const VIEW_COPIES = 2;

/** An answer, and its {@link inlineBytes}. */
interface FittingAnswer {
  readonly answer: HookAnswer;
  readonly bytes: number;
}

/**
 * The answer as far as its record has room for it: at most `room` bytes by {@link inlineBytes}. First it loses the
 * payload and the raw return, which only readers use. If that is not enough, it becomes a failure.
 */
function fitting(answer: HookAnswer, registration: HookRegistration, room: number): FittingAnswer {
  const whole = { answer, bytes: inlineBytes(answer) };
  if (whole.bytes <= room) return whole;
  const { raw: _, payload: __, ...rest } = answer;
  const bytes = inlineBytes(rest);
  if (rest.failure || bytes <= room) return { answer: rest, bytes };
  const message = `the return takes ${bytes} bytes of its record, without long texts; the limit is ${Math.max(0, room)}`;
  const refused = failed(registration, { code: 'return_unreadable', message });
  return { answer: refused, bytes: inlineBytes(refused) };
}

function failed(registration: HookRegistration, failure: HookFailure): HookAnswer {
  return { hook: registration.id, failure };
}

// The return value as a copy, and its size in UTF-8. The failure says why it cannot be recorded: it is not JSON or too
// large.
function jsonOf(
  raw: unknown,
  maxBytes: number,
): { ok: true; value: Json | undefined; bytes: number } | { ok: false; failure: HookFailure } {
  try {
    const problem = returnProblem(raw);
    if (problem !== null) throw new Error(problem);
    const text = JSON.stringify(raw);
    if (text === undefined) return { ok: true, value: undefined, bytes: 0 };
    const bytes = Buffer.byteLength(text, 'utf8');
    if (bytes <= maxBytes) return { ok: true, value: JSON.parse(text) as Json, bytes };
    const message = `the return has ${bytes} bytes; the limit is ${maxBytes}`;
    return { ok: false, failure: { code: 'return_unreadable', message } };
  } catch (error) {
    return {
      ok: false,
      failure: { code: 'return_unreadable', message: `the return is not JSON: ${(error as Error).message}` },
    };
  }
}

/**
 * A parsed return value as the tape has it. The tape does not repeat the view: a list of messages of a
 * `transform_context` hook has messages of the view as indexes, and new ones in full. The list is a failure if its
 * calls and results do not pair, or if its new messages exceed `BOUNDS.transformedMessagesMaxBytes`. Other returns stay
 * as they are.
 */
function onTape(parsed: HookReturn | HookFailure, view: readonly Message[] | undefined): HookReturn | HookFailure {
  if (isHookFailure(parsed) || parsed.verdict.kind !== 'replace_messages' || !view) return parsed;
  const returned = parsed.verdict.messages as readonly Message[];
  const invalid = (message: string): HookFailure => ({
    code: 'verdict_invalid',
    message: `transform_context: ${message}`,
  });
  const problem = pairingProblem(returned);
  if (problem) return invalid(problem);
  const places = new Map(view.map((message, place) => [canonicalJson(message), place]));
  let bytes = 0;
  const messages = returned.map((message) => {
    const text = canonicalJson(message);
    const place = places.get(text);
    if (place === undefined) bytes += Buffer.byteLength(text, 'utf8');
    return place ?? message;
  });
  return bytes <= BOUNDS.transformedMessagesMaxBytes
    ? { ...parsed, verdict: { kind: 'replace_messages', messages } }
    : invalid(`new messages have ${bytes} bytes; the limit is ${BOUNDS.transformedMessagesMaxBytes}`);
}

function shownBy(taped: readonly (number | Message)[], view: readonly Message[]): readonly Message[] {
  return taped.flatMap((message) => (typeof message === 'number' ? (view[message] ?? []) : message));
}

/**
 * Whether a verdict ends the chain: it blocks, denies, or decides (`allow`, `deny` or `ask`). The verdict of a
 * `gate_tool_calls` hook ends the chain only if it allows no call; otherwise the next hook judges the batch, too.
 */
export function endsChain(verdict: Verdict | undefined): boolean {
  if (verdict?.kind === 'gate') return verdict.calls.every((call) => !('allow' in call && call.allow));
  return verdict?.kind === 'block' || verdict?.kind === 'deny' || verdict?.kind === 'decision';
}

/** The payload for the next handler: with the rewrite of the verdict, or unchanged. */
export function payloadAfter(payload: JsonObject, verdict: Verdict | undefined): JsonObject {
  switch (verdict?.kind) {
    case 'rewrite_args': {
      const asked = payload.tool === undefined ? 'step' : 'tool';
      return { ...payload, [asked]: { ...(payload[asked] as JsonObject), args: verdict.args } };
    }
    case 'rewrite_output':
      return { ...payload, step: { ...(payload.step as JsonObject), output: verdict.output } };
    case 'rewrite_result':
      return withResult(payload, verdict);
    default:
      return payload;
  }
}

function withResult(payload: JsonObject, verdict: Extract<Verdict, { kind: 'rewrite_result' }>): JsonObject {
  const result = rewriteResult(payload.result as unknown as ToolResult, verdict);
  return { ...payload, result: result as unknown as Json, is_error: result.is_error };
}
