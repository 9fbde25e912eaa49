/** What a process that serves something on the bus tells of each piece of its work, for meters, spans and logs. */

import type { HookQuestion, HookReply } from './hook-questions.ts';

/** A piece of work that begins. */
export interface BegunWork {
  /** A call of a tool, a step of a persona's model, or a question to a hook. */
  readonly kind: 'tool' | 'step' | 'hook';
  /** The tool's name, the persona's, the hook's id. */
  readonly name: string;
  readonly tenant: string;
  readonly sessionId: string;
  /** The call's id; of a hook, the consult's. */
  readonly callId: string;
  /** Under which span of the session it stands, as the request's header said. */
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
  /** Its own place in the trace, for whatever it calls; undefined where nobody traces. */
  readonly traceparent: string | undefined;
  /** Contract: called once; does not throw. */
  end(how: EndedWork): void;
}

/** Contract: does not throw. */
export interface WorkObserver {
  begin(work: BegunWork): WorkUnderWay;
}

/** Has a question answered, and tells whoever looks on. Rejects only where the answer does. */
export async function observedHook(
  observer: WorkObserver | undefined,
  { ref, effectId, registration }: HookQuestion,
  traceparent: string | undefined,
  answer: () => Promise<HookReply>,
): Promise<HookReply> {
  const work = observer?.begin({
    kind: 'hook',
    name: registration.id,
    tenant: ref.tenant,
    sessionId: ref.sessionId,
    callId: effectId,
    traceparent: traceparent || undefined,
  });
  const reply = await answer();
  work?.end(reply.status === 'failed' ? { status: 'error', code: reply.code } : { status: 'ok' });
  return reply;
}
