/** What a process that serves something on the bus tells of each piece of its work, for meters, spans and logs. */

import type { HookQuestion, HookReply } from '../hooks/hook-questions.ts';
import type { JsonObject } from '../wire/json.ts';

/** A piece of work that begins. */
export interface BegunWork {
  /** A call of a tool, a step of a persona's model, or a question to a hook. */
  readonly kind: 'tool' | 'step' | 'hook';
  /** The tool's name, the persona's, the hook's id. */
  readonly name: string;
  readonly tenant: string;
  readonly sessionId: string;
  /** The tool call that the work is about; undefined for a hook that is asked about something else. */
  readonly callId: string | undefined;
  /** The consult that a hook's question belongs to. */
  readonly effectId?: string | undefined;
  /** Trace context of the request: the span of the session that contains it. */
  readonly traceparent: string | undefined;
}

/** How a piece of work has ended. */
export interface EndedWork {
  readonly status: 'ok' | 'error' | 'cancelled';
  /** Why it went wrong: a catalogued code, where there is one. */
  readonly code?: string | undefined;
}

/** A piece of work that goes on. */
export interface WorkUnderWay {
  /** Trace context for outgoing calls; undefined without tracing. */
  readonly traceparent: string | undefined;
  /** Contract: called once; does not throw. */
  end(how: EndedWork): void;
}

/** Contract: does not throw. */
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

/** The call that a hook is asked about: payloads name it as `tool.call_id` or as `call_id`. */
function callIdIn(payload: JsonObject): string | undefined {
  const { tool, call_id } = payload as {
    readonly tool?: { readonly call_id?: unknown } | null;
    readonly call_id?: unknown;
  };
  const id = tool?.call_id ?? call_id;
  return typeof id === 'string' ? id : undefined;
}
