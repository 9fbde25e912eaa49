/**
 * Observation of the work of a process that serves tools, personas or hooks: for meters, spans and logs.
 */

import type { HookQuestion, HookReply } from '../hooks/hook-questions.ts';
import type { JsonObject } from '../wire/json.ts';

/** A piece of work at its start. */
export interface BegunWork {
  /** A call of a tool, a model step of a persona, or a question to a hook. */
  readonly kind: 'tool' | 'step' | 'hook';
  /** The tool's name, the persona's name, or the hook's id. */
  readonly name: string;
  readonly tenant: string;
  readonly sessionId: string;
  /** The tool call of the work; undefined for a hook without a call. */
  readonly callId: string | undefined;
  /** The consult of a hook's question. */
  readonly effectId?: string | undefined;
  /** Trace context of the request: the span of the session that contains it. */
  readonly traceparent: string | undefined;
}

/** The end of a piece of work. */
export interface EndedWork {
  readonly status: 'ok' | 'error' | 'cancelled';
  /** Why it failed: a catalogued code, if there is one. */
  readonly code?: string | undefined;
}

/** A running piece of work. */
export interface WorkUnderWay {
  /** Trace context for outgoing calls; undefined without tracing. */
  readonly traceparent: string | undefined;
  /** Contract: called once; does not throw. */
  end(how: EndedWork): void;
}

/** Observes the work of a process. Contract: does not throw. */
export interface WorkObserver {
  begin(work: BegunWork): WorkUnderWay;
}

/** Answers a question and notifies the observer. Rejects only if the answer does. */
export async function observedHook(
  observer: WorkObserver | undefined,
  { ref, effectId, registration, payload }: HookQuestion,
  traceparent: string | undefined,
  answer: () => Promise<HookReply>,
): Promise<HookReply> {
  const work = observer?.begin({
    kind: 'hook',
    name: registration.id,
    tenant: ref.tenant,
    sessionId: ref.sessionId,
    callId: callIdIn(payload),
    effectId,
    traceparent: traceparent || undefined,
  });
  const reply = await answer();
  work?.end(reply.status === 'failed' ? { status: 'error', code: reply.code } : { status: 'ok' });
  return reply;
}

/** The call that a hook's payload names, as `tool.call_id` or `call_id`. */
function callIdIn(payload: JsonObject): string | undefined {
  const { tool, call_id } = payload as {
    readonly tool?: { readonly call_id?: unknown } | null;
    readonly call_id?: unknown;
  };
  const id = tool?.call_id ?? call_id;
  return typeof id === 'string' ? id : undefined;
}
