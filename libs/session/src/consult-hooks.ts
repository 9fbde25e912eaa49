/** `consultHooks`: the only caller of hooks. One recorder, one verdict parser, one place where time is bounded. */
import type { Clock, HookReply, Hooks } from '@coxswain/ports';
import {
  BOUNDS,
  type ConsultOutcome,
  type HookAnswer,
  type HookFailure,
  type HookPoint,
  type HookRegistration,
  isHookFailure,
  type Json,
  type JsonObject,
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
  for (const registration of consult.registrations) {
    if (ended || signal.aborted) {
      answers.push({ hook: registration.id, not_run: true });
      continue;
    }
    const answer = await askOne(hooks, clock, consult, registration, payload, signal);
    if (payload !== consult.payload) answer.payload = payload;
    answers.push(answer);
    const { verdict } = answer;
    ended = endsChain(verdict) || (answer.failure !== undefined && registration.on_error === 'fail_closed');
    if (verdict?.kind === 'rewrite_args') {
      rewrittenArgs = verdict.args;
      payload = { ...payload, tool: { ...(payload.tool as JsonObject), args: verdict.args } };
    }
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
  payload: JsonObject,
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
  const answer = hooks.ask({ ref: consult.ref, registration, payload, onFeedback }, asked).catch(broken);
  const reply = await Promise.race([answer, timeout]);
  timer.abort();
  if (reply === 'timeout') {
    const message = signal.aborted
      ? 'the run ended while it was asked'
      : `no answer within ${registration.timeout_ms} ms`;
    return failed(registration, { code: 'hook_timeout', message });
  }
  if (reply.status === 'failed') return failed(registration, { code: reply.code, message: reply.message });
  const raw = jsonOf(reply.raw);
  const parsed = raw.ok ? parseVerdict(consult.point, raw.value) : raw.failure;
  const said = raw.ok && raw.value !== undefined ? { raw: raw.value } : {};
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
function jsonOf(raw: unknown): { ok: true; value: Json | undefined } | { ok: false; failure: HookFailure } {
  try {
    const text = JSON.stringify(raw);
    if (text === undefined) return { ok: true, value: undefined };
    const bytes = Buffer.byteLength(text, 'utf8');
    if (bytes <= BOUNDS.hookPayloadMaxBytes) return { ok: true, value: JSON.parse(text) as Json };
    const message = `the return has ${bytes} bytes, at most ${BOUNDS.hookPayloadMaxBytes} are taken`;
    return { ok: false, failure: { code: 'verdict_invalid', message } };
  } catch (error) {
    return {
      ok: false,
      failure: { code: 'verdict_invalid', message: `the return is not JSON: ${(error as Error).message}` },
    };
  }
}

function endsChain(verdict: Verdict | undefined): boolean {
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
