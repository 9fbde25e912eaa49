/** Answers one question to a hook that arrived over the bus, for any process that serves handlers. */
import {
  BOUNDS,
  canonicalJson,
  cutText,
  HookArgs,
  type HookPoint,
  type HookQuestion,
  type HookRegistration,
  type HookReply,
  isInboxSubject,
  type JsonObject,
  Message,
  type ReceivedQuestion,
  returnProblem,
  type ServedHookAnswer,
  type WorkObserver,
} from '@coxswain/protocol';

/** What an answer needs of the process that serves the hook. */
export interface HookService {
  /** Finds the registration of the hook at a point; undefined if it is not served. */
  registrationAt(point: HookPoint): HookRegistration | undefined;
  /** Fetches a list from the host, as JSON. */
  fetch(subject: string, want: 'transcript' | 'messages'): Promise<string>;
  /** Runs the handler on a question. Contract: never rejects. */
  answer(question: HookQuestion, signal: AbortSignal): Promise<HookReply>;
  readonly observer?: WorkObserver | undefined;
}

/** Answers a question. @returns null if the host no longer waits for it. */
export async function answerHook(
  { ref, effectId, hook, args, signal, traceparent, onFeedback }: ReceivedQuestion,
  { registrationAt, fetch, answer, observer }: HookService,
): Promise<ServedHookAnswer | null> {
  const read = HookArgs.safeParse(args);
  if (!read.success || !isInboxSubject(read.data.fetch)) return failed('hook_unavailable', 'invalid question');
  const { point, payload, timeout_ms, fetch: subject, shows_messages } = read.data;
  const registration = registrationAt(point);
  if (!registration) return failed('hook_unavailable', `this process does not serve ${hook} at ${point}`);
  const fetched = new Map<string, Promise<readonly Message[]>>();
  const list = (want: 'transcript' | 'messages') => () => {
    const known = fetched.get(want) ?? fetch(subject, want).then((text) => Message.array().parse(JSON.parse(text)));
    fetched.set(want, known);
    return known;
  };
  const question: HookQuestion = {
    ref,
    effectId,
    registration,
    payload,
    transcript: list('transcript'),
    ...(shows_messages ? { messages: list('messages') } : {}),
    onFeedback,
  };
  const reply = await answeredWithin(timeout_ms, signal, (stop) =>
    observedHook(observer, question, traceparent, () => answer(question, stop)),
  );
  if (reply === null) return null;
  if (reply.status === 'failed') return reply;
  const problem = problemOf(reply.raw);
  if (problem !== null) return failed('return_unreadable', `the return is not JSON: ${problem}`);
  return bounded(shapedBy(reply.raw, await fetched.get('messages')?.catch(() => undefined)));
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
 * Aborts a handler after the time limit, or when the host no longer waits, and resolves to null. The host's own limit
 * started earlier, so the host reports the timeout itself. Most handlers answer immediately and need no timer.
 */
function answeredWithin(
  timeoutMs: number,
  signal: AbortSignal,
  ask: (stop: AbortSignal) => Promise<HookReply>,
): Promise<HookReply | null> {
  const waiting = new AbortController();
  return new Promise((resolve, reject) => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = () => {
      resolve(null);
      waiting.abort();
    };
    const starting = setImmediate(() => {
      timer = setTimeout(late, timeoutMs);
    });
    signal.addEventListener('abort', late, { once: true });
    const settled = () => {
      clearImmediate(starting);
      clearTimeout(timer);
      signal.removeEventListener('abort', late);
    };
    void ask(waiting.signal).then(resolve, reject).then(settled);
  });
}

// A whole view may exceed the size of a message, so shown messages are returned by their index.
function shapedBy(raw: unknown, shown: readonly Message[] | undefined): ServedHookAnswer {
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

// The host accepts each index once, and equal messages may be shown several times.
function byPlaces(returned: readonly Message[], shown: readonly Message[]): (number | Message)[] {
  const places = new Map<string, number[]>();
  for (let place = shown.length - 1; place >= 0; place--) {
    const text = canonicalJson(shown[place]);
    const equal = places.get(text);
    if (equal) equal.push(place);
    else places.set(text, [place]);
  }
  return returned.map((message) => places.get(canonicalJson(message))?.pop() ?? message);
}

function failed(
  code: 'hook_unavailable' | 'return_unreadable',
  message: string,
): Extract<ServedHookAnswer, { status: 'failed' }> {
  return { status: 'failed', code, message };
}

const encoder = new TextEncoder();

/** Replaces an answer that is too long or not JSON. */
function bounded(answer: ServedHookAnswer): ServedHookAnswer {
  try {
    const bytes = encoder.encode(JSON.stringify(answer)).length;
    if (bytes <= BOUNDS.hookPayloadMaxBytes) return answer;
    return failed('return_unreadable', `the return has ${bytes} bytes; the limit is ${BOUNDS.hookPayloadMaxBytes}`);
  } catch (error) {
    return failed('return_unreadable', `the return is not JSON: ${cutText((error as Error).message, 500)}`);
  }
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
