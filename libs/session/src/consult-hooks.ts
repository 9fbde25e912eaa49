/** `consultHooks`: the only caller of hooks. One recorder, one verdict parser, one place where time is bounded. */
import type { Clock, HookReply, Hooks } from '@coxswain/ports';
import {
  BOUNDS,
  type ConsultOutcome,
  canonicalJson,
  type HookAnswer,
  type HookFailure,
  type HookPoint,
  type HookRegistration,
  isHookFailure,
  type Json,
  type JsonObject,
  type Message,
  pairingProblem,
  parseVerdict,
  type SessionRef,
  type ToolDefinition,
  type Verdict,
} from '@coxswain/protocol';
import { argumentsProblem } from './validate-arguments.ts';

/** One consult: every registration of one point, in order, over one payload. */
export interface Consult {
  readonly ref: SessionRef;
  readonly effectId: string;
  readonly point: HookPoint;
  readonly registrations: readonly HookRegistration[];
  readonly payload: JsonObject;
  /** The tool of a tool point, so that rewritten arguments are validated again. */
  readonly tool: ToolDefinition | undefined;
  /** At `transform_context`: what the request would show. */
  readonly messages?: readonly Message[] | undefined;
  /** Takes what a handler tells the model beside its verdict. */
  readonly onFeedback: (hook: string, text: string) => void;
}

/**
 * Asks the registrations of a point one after another; rewrites chain, the first veto ends the chain.
 * Contract: never rejects. Settles within the sum of the registrations' time-outs, or when the signal aborts.
 */
export async function consultHooks(
  hooks: Hooks,
  clock: Clock,
  consult: Consult,
  signal: AbortSignal,
): Promise<ConsultOutcome> {
  const answers: HookAnswer[] = [];
  let payload = consult.payload;
  let ended = false;
  let rewrittenArgs: JsonObject | undefined;
  let { messages } = consult;
  for (const registration of consult.registrations) {
    if (ended || signal.aborted) {
      answers.push({ hook: registration.id, not_run: true });
      continue;
    }
    const answer = await askOne(hooks, clock, consult, registration, { payload, messages }, signal);
    if (payload !== consult.payload) answer.payload = payload;
    answers.push(answer);
    const { verdict } = answer;
    ended = endsChain(verdict) || (answer.failure !== undefined && registration.on_error === 'fail_closed');
    if (verdict?.kind === 'rewrite_args') {
      rewrittenArgs = verdict.args;
      payload = { ...payload, tool: { ...(payload.tool as JsonObject), args: verdict.args } };
    }
    if (verdict?.kind === 'replace_messages') messages = shownBy(verdict.messages, consult.messages ?? []);
    if (verdict?.kind === 'rewrite_result') payload = withResult(payload, verdict);
  }
  const problem = rewrittenArgs && consult.tool ? argumentsProblem(consult.tool, rewrittenArgs) : null;
  return {
    type: 'consult_outcome',
    effect_id: consult.effectId,
    status: signal.aborted ? 'cancelled' : 'answered',
    answers,
    ...(problem ? { args_problem: { code: 'invalid_call_arguments', message: problem } } : {}),
  };
}

async function askOne(
  hooks: Hooks,
  clock: Clock,
  consult: Consult,
  registration: HookRegistration,
  { payload, messages }: { readonly payload: JsonObject; readonly messages: readonly Message[] | undefined },
  signal: AbortSignal,
): Promise<HookAnswer> {
  const bytes = Buffer.byteLength(JSON.stringify(payload), 'utf8');
  if (bytes > BOUNDS.hookPayloadMaxBytes) {
    const message = `not asked: the payload has ${bytes} bytes, at most ${BOUNDS.hookPayloadMaxBytes} are sent`;
    return failed(registration, { code: 'hook_unavailable', message });
  }
  const timer = new AbortController();
  const asked = AbortSignal.any([signal, timer.signal]);
  const timeout = clock.sleep(registration.timeout_ms, asked).then(() => 'timeout' as const);
  const onFeedback = (text: string) => {
    if (!asked.aborted) consult.onFeedback(registration.id, text);
  };
  const request = { ref: consult.ref, registration, payload, onFeedback, ...(messages ? { messages } : {}) };
  const answer = hooks.ask(request, asked).catch(broken);
  const reply = await Promise.race([answer, timeout]);
  timer.abort();
  if (reply === 'timeout') {
    const message = signal.aborted
      ? 'the run ended while it was asked'
      : `no answer within ${registration.timeout_ms} ms`;
    return failed(registration, { code: 'hook_timeout', message });
  }
  if (reply.status === 'failed') return failed(registration, { code: reply.code, message: reply.message });
  const raw = jsonOf(reply.raw, consult.messages ? BOUNDS.transformedViewMaxBytes : BOUNDS.hookPayloadMaxBytes);
  const parsed = raw.ok ? onTape(parseVerdict(consult.point, raw.value), consult.messages) : raw.failure;
  // A whole view is told by places in it, or not at all.
  const isTooMuch = raw.ok && raw.bytes > BOUNDS.hookPayloadMaxBytes;
  const isRetold = 'kind' in parsed && parsed.kind === 'replace_messages';
  const said = raw.ok && raw.value !== undefined && !isTooMuch && !isRetold ? { raw: raw.value } : {};
  return isHookFailure(parsed)
    ? { ...failed(registration, parsed), ...said }
    : { hook: registration.id, verdict: parsed, ...said };
}

// The port does not reject. If it does all the same, that is one hook's failure, and its own policy decides.
function broken(error: Error): HookReply {
  return { status: 'failed', code: 'hook_unavailable', message: error.message };
}

function failed(registration: HookRegistration, failure: HookFailure): HookAnswer {
  return { hook: registration.id, failure };
}

// What a handler returns must be recordable: anything that JSON cannot hold is no verdict.
function jsonOf(
  raw: unknown,
  maxBytes: number,
): { ok: true; value: Json | undefined; bytes: number } | { ok: false; failure: HookFailure } {
  try {
    const text = JSON.stringify(raw);
    if (text === undefined) return { ok: true, value: undefined, bytes: 0 };
    const bytes = Buffer.byteLength(text, 'utf8');
    if (bytes <= maxBytes) return { ok: true, value: JSON.parse(text) as Json, bytes };
    const message = `the return has ${bytes} bytes, at most ${maxBytes} are taken`;
    return { ok: false, failure: { code: 'verdict_invalid', message } };
  } catch (error) {
    return {
      ok: false,
      failure: { code: 'verdict_invalid', message: `the return is not JSON: ${(error as Error).message}` },
    };
  }
}

/**
 * What a transform_context hook returned, as the tape holds it: messages that stand in the view by their places, the
 * others in full, so that a tape does not hold every view a second time.
 */
export function onTape(parsed: Verdict | HookFailure, view: readonly Message[] | undefined): Verdict | HookFailure {
  if (isHookFailure(parsed) || parsed.kind !== 'replace_messages' || !view) return parsed;
  const invalid = (message: string): HookFailure => ({
    code: 'verdict_invalid',
    message: `transform_context: ${message}`,
  });
  const problem = pairingProblem(parsed.messages as readonly Message[]);
  if (problem) return invalid(problem);
  const places = new Map(view.map((message, place) => [canonicalJson(message), place]));
  let bytes = 0;
  const messages = parsed.messages.map((message) => {
    const text = canonicalJson(message);
    const place = places.get(text);
    if (place === undefined) bytes += Buffer.byteLength(text, 'utf8');
    return place ?? message;
  });
  return bytes <= BOUNDS.transformedMessagesMaxBytes
    ? { kind: 'replace_messages', messages }
    : invalid(`messages of its own have ${bytes} bytes, at most ${BOUNDS.transformedMessagesMaxBytes} are taken`);
}

function shownBy(taped: readonly (number | Message)[], view: readonly Message[]): readonly Message[] {
  return taped.flatMap((message) => (typeof message === 'number' ? (view[message] ?? []) : message));
}

/** Whether a verdict ends the chain: those behind it are not asked. */
export function endsChain(verdict: Verdict | undefined): boolean {
  if (verdict?.kind === 'gate') return verdict.calls.some((call) => call === null || !call.allow);
  return verdict?.kind === 'block' || verdict?.kind === 'deny' || verdict?.kind === 'decision';
}

function withResult(payload: JsonObject, verdict: Extract<Verdict, { kind: 'rewrite_result' }>): JsonObject {
  const result = payload.result as JsonObject;
  return {
    ...payload,
    result: verdict.result === undefined ? result : { ...result, content: [{ type: 'text', text: verdict.result }] },
    is_error: verdict.is_error ?? payload.is_error ?? false,
  };
}
