/**
 * Runs one handler on one question: the edge between the names of the wire, in questions and replies, and those of TypeScript, in all
 * that a handler sees and returns.
 *
 * H1: It never rejects: what a handler throws is an answer, `hook_threw`.
 * H2: A handler has payload and context for itself, frozen: what it writes into them reaches nobody.
 * H3: It bounds neither time nor what is returned: whoever asks does, for every source of hooks alike.
 */
import {
  type AnyHandler,
  BOUNDS,
  type CamelCased,
  cutText,
  fromWire,
  type HandlerPayload,
  HOOK_PAYLOADS,
  type HookContext,
  type HookPoint,
  type HookQuestion,
  type HookReply,
  type JsonObject,
  Message,
  toWireReturn,
} from '@coxswain/protocol';

/** Where code runs: a process that tells whose failures are whose says so. */
export interface HandlerSurroundings {
  /** Runs the handler. */
  asTheirs<T>(hook: string, work: () => T): T;
  /** Runs what the handler sets going in us. */
  asOurs<T>(work: () => T): T;
}

const NO_SURROUNDINGS: HandlerSurroundings = { asTheirs: (_, work) => work(), asOurs: (work) => work() };

const Messages = Message.array();

/** What is kept of what a handler threw. */
const MESSAGE_MAX_CHARS = 500;

/** Asks a handler. Takes the question's payload for its own. */
export async function runHookHandler(
  handler: AnyHandler,
  question: HookQuestion,
  signal: AbortSignal,
  run: HandlerSurroundings = NO_SURROUNDINGS,
): Promise<HookReply> {
  const { point } = question.registration;
  try {
    // Its shape is that of its point: the machine has made it.
    const payload = deeplyFrozen(fromWire(HOOK_PAYLOADS[point], question.payload) as JsonObject);
    const context = contextOf(question, payload, signal, run);
    const returned = await run.asTheirs(question.registration.id, () =>
      handler(payload as unknown as HandlerPayload<HookPoint>, context as unknown as HookContext),
    );
    const calls = Array.isArray(payload.calls) ? payload.calls.length : 0;
    const wire = toWireReturn(point, returned, calls);
    return wire.ok
      ? { status: 'returned', raw: wire.value }
      : { status: 'failed', code: 'verdict_invalid', message: wire.message };
  } catch (error) {
    return { status: 'failed', code: 'hook_threw', message: messageOf(error) };
  }
}

function contextOf(
  question: HookQuestion,
  payload: JsonObject,
  signal: AbortSignal,
  { asOurs }: HandlerSurroundings,
): HookContext<'transform_context'> {
  const { ref, effectId, registration, transcript, messages, onFeedback } = question;
  const { persona, turn, step, tool } = payload as Record<string, unknown>;
  let said = 0;
  return Object.freeze({
    hook: registration.id,
    tenant: ref.tenant,
    session: Object.freeze({ id: ref.sessionId }),
    persona: persona as string,
    turn: turn as number,
    step: step as HookContext['step'],
    call: tool as HookContext['call'],
    idempotencyKey: `${ref.tenant}.${ref.sessionId}.${effectId}`,
    signal,
    transcript: async () => shown(await asOurs(transcript)),
    messages: async () => shown((messages && (await asOurs(messages))) ?? []),
    feedback: (text: string) => {
      // Beyond it the session would only count.
      said++;
      const told = String(text);
      if (said <= BOUNDS.feedbackPendingMax) asOurs(() => onFeedback(told));
    },
  });
}

/** A frozen copy, in the names of TypeScript. */
function shown(messages: readonly Message[]): readonly CamelCased<Message>[] {
  return deeplyFrozen(fromWire(Messages, structuredClone([...messages])));
}

// Not recursive: arguments come from models and may be nested deep.
function deeplyFrozen<T extends object>(root: T): T {
  const open: object[] = [root];
  for (let next = open.pop(); next; next = open.pop()) {
    Object.freeze(next);
    for (const member of Object.values(next)) if (typeof member === 'object' && member !== null) open.push(member);
  }
  return root;
}

// What is thrown may be anything, also something that cannot be told.
function messageOf(error: unknown): string {
  try {
    const text = error instanceof Error ? error.message || error.name : String(error);
    return text.length > MESSAGE_MAX_CHARS ? `${cutText(text, MESSAGE_MAX_CHARS)}…` : text;
  } catch {
    return 'it threw what cannot be told';
  }
}
