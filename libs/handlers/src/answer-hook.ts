/**
 * Answers one hook question that arrived over the bus, for any process that serves handlers and any connection.
 */

import {
  BOUNDS,
  canonicalJson,
  cutText,
  HookAsked,
  type HookCallback,
  type HookQuestion,
  type HookRegistration,
  type HookReply,
  isInboxSubject,
  type JsonObject,
  Message,
  returnProblem,
  type TenantId,
  type WorkObserver,
} from '@coxswain/protocol';

/** The part of a connection that an answer needs. */
export interface HookCallbacks {
  /** Fetches one part of a list from the host. @returns its bytes, and the total size of all parts. */
  fetch(subject: string, wanted: string): Promise<{ readonly part: Uint8Array; readonly total: number }>;
  /** Sends a message to the host. */
  tell(subject: string, text: string): void;
}

/** Runs a handler on a question. Contract: never rejects. */
export type AnswerHook = (question: HookQuestion, signal: AbortSignal) => Promise<HookReply>;

/** The maximum number of concurrent hook questions in one process. Further questions are rejected. */
export const HOOKS_ANSWERING_MAX = 256;

/**
 * Parses a question.
 * @param isServed whether this process serves a hook with the id.
 * @returns null for an invalid question, and for a hook that this process does not serve.
 */
export function readHookQuestion(text: string, isServed: (hook: string) => boolean): HookAsked | null {
  try {
    const parsed = HookAsked.safeParse(JSON.parse(text));
    return parsed.success && isServed(parsed.data.hook) && isInboxSubject(parsed.data.callback) ? parsed.data : null;
  } catch {
    // The text is not JSON.
    return null;
  }
}

/** Confirms to the host that this process has the question. */
export function confirmHook(callbacks: HookCallbacks, { callback }: HookAsked, instance: string): void {
  try {
    callbacks.tell(callback, JSON.stringify({ want: 'taken', instance } satisfies HookCallback));
  } catch {
    // Without the connection, the host asks again once it has another instance or the connection returns.
  }
}

/** The reply to a question that this process cannot answer. */
export function hookUnavailable(asked: HookAsked, message: string): string {
  return replyOf(asked, failed('hook_unavailable', message));
}

/**
 * How long a process may work on a question before it confirms that it has the question, milliseconds. An answer within
 * this time needs no confirmation. The host waits for one at least 30 times as long.
 */
const CONFIRM_AFTER_MS = 20;

/**
 * Answers a question.
 * @param instance the process, as its heartbeats name it.
 * @returns the text of the reply; null if the host no longer waits for it.
 */
export async function answerHook(
  asked: HookAsked,
  tenant: TenantId,
  registration: HookRegistration,
  instance: string,
  callbacks: HookCallbacks,
  answer: AnswerHook,
): Promise<string | null> {
  const { payload, callback, timeout_ms } = asked;
  const fetched = new Map<string, Promise<readonly Message[]>>();
  const list = (want: 'transcript' | 'messages') => async () => {
    const known = fetched.get(want) ?? fetchList(callbacks, callback, want);
    fetched.set(want, known);
    return known;
  };
  const question: HookQuestion = {
    ref: { tenant, sessionId: asked.session_id },
    effectId: asked.effect_id,
    registration,
    payload,
    transcript: list('transcript'),
    ...(asked.shows_messages ? { messages: list('messages') } : {}),
    onFeedback: (text) => tell(callbacks, callback, text),
  };
  const confirm = () => confirmHook(callbacks, asked, instance);
  const reply = await answeredWithin(timeout_ms, (signal) => answer(question, signal), confirm);
  if (reply === null) return null;
  if (reply.status === 'failed') return replyOf(asked, reply);
  const problem = problemOf(reply.raw);
  if (problem !== null) return replyOf(asked, failed('return_unreadable', `the return is not JSON: ${problem}`));
  return replyOf(asked, shapedBy(reply.raw, await fetched.get('messages')));
}

// The return value may be an object with a getter that throws.
function problemOf(raw: unknown): string | null {
  try {
    return returnProblem(raw);
  } catch (error) {
    return cutText(String((error as Error)?.message ?? error), 500);
  }
}

/**
 * Aborts a handler after the time limit and resolves to null. The host's own limit started earlier, so the host reports
 * the timeout itself. Most handlers answer immediately and need no timer.
 * @param confirm called if the answer takes {@link CONFIRM_AFTER_MS}.
 */
function answeredWithin(
  timeoutMs: number,
  ask: (signal: AbortSignal) => Promise<HookReply>,
  confirm: () => void,
): Promise<HookReply | null> {
  const waiting = new AbortController();
  return new Promise((resolve, reject) => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let confirming: ReturnType<typeof setTimeout> | undefined;
    const late = () => {
      resolve(null);
      waiting.abort();
    };
    const starting = setImmediate(() => {
      timer = setTimeout(late, timeoutMs);
      confirming = setTimeout(confirm, CONFIRM_AFTER_MS);
    });
    const settled = () => {
      clearImmediate(starting);
      clearTimeout(timer);
      clearTimeout(confirming);
    };
    void ask(waiting.signal).then(resolve, reject).then(settled);
  });
}

type Answer =
  | Extract<HookReply, { status: 'failed' }>
  | { readonly status: 'returned'; readonly raw: unknown }
  | { readonly status: 'shaped'; readonly messages: readonly (number | Message)[] };

// A whole view may exceed the size of a message, so shown messages are returned by their index.
function shapedBy(raw: unknown, shown: readonly Message[] | undefined): Answer {
  if (!shown) return { status: 'returned', raw };
  try {
    const { messages, ...rest } = raw as { messages?: unknown };
    const isView = Array.isArray(messages) && Object.keys(rest).length === 0;
    if (!isView || !messages.every((one) => Message.safeParse(one).success)) return { status: 'returned', raw };
    return { status: 'shaped', messages: byPlaces(messages as Message[], shown) };
  } catch {
    // The value has no readable messages: return it unchanged.
    return { status: 'returned', raw };
  }
}

function byPlaces(returned: readonly Message[], shown: readonly Message[]): (number | Message)[] {
  const places = new Map(shown.map((message, place) => [canonicalJson(message), place]));
  return returned.map((message) => places.get(canonicalJson(message)) ?? message);
}

function failed(
  code: 'hook_unavailable' | 'return_unreadable',
  message: string,
): Extract<Answer, { status: 'failed' }> {
  return { status: 'failed', code, message };
}

const encoder = new TextEncoder();

function replyOf({ hook, session_id, effect_id }: HookAsked, answer: Answer): string {
  const reply = (what: Answer) => JSON.stringify({ v: 1, hook, session_id, effect_id, ...what });
  try {
    const text = reply(answer);
    const bytes = encoder.encode(text).length;
    if (bytes <= BOUNDS.hookPayloadMaxBytes) return text;
    return reply(
      failed('return_unreadable', `the return has ${bytes} bytes; the limit is ${BOUNDS.hookPayloadMaxBytes}`),
    );
  } catch (error) {
    return reply(failed('return_unreadable', `the return is not JSON: ${cutText((error as Error).message, 500)}`));
  }
}

function tell(callbacks: HookCallbacks, callback: string, text: string): void {
  const said: HookCallback = { want: 'feedback', text: cutText(text, 8_192) };
  callbacks.tell(callback, JSON.stringify(said));
}

async function fetchList(
  callbacks: HookCallbacks,
  callback: string,
  want: 'transcript' | 'messages',
): Promise<Message[]> {
  const decoder = new TextDecoder();
  let text = '';
  let offset = 0;
  let total = Number.POSITIVE_INFINITY;
  while (offset < total) {
    const wanted: HookCallback = { want, offset };
    const fetched = await callbacks.fetch(callback, JSON.stringify(wanted));
    total = fetched.total;
    if (!(total <= BOUNDS.transformedViewMaxBytes) || fetched.part.length === 0)
      throw new Error('the host did not provide it');
    text += decoder.decode(fetched.part, { stream: true });
    offset += fetched.part.length;
  }
  return Message.array().parse(JSON.parse(text + decoder.decode()));
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
