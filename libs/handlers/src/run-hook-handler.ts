/**
 * Runs one handler on one question. It converts between wire names, in questions and replies, and TypeScript names, in
 * everything that a handler sees and returns.
 *
 * HANDLER-1  It never rejects: an exception of a handler becomes the answer `hook_threw`.
 * HANDLER-2  A handler gets its own frozen payload and context, so that its writes have no other effect.
 * HANDLER-3  It limits neither time nor size. Its caller does that, in the same way for every source of hooks.
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

/** Marks which code runs, in a process that attributes failures to handlers or to the host. */
export interface HandlerSurroundings {
  /** Runs the handler. */
  asTheirs<T>(hook: string, work: () => T): T;
  /** Runs host code that the handler calls. */
  asOurs<T>(work: () => T): T;
}

const NO_SURROUNDINGS: HandlerSurroundings = { asTheirs: (_, work) => work(), asOurs: (work) => work() };

const Messages = Message.array();

/** Maximum length of a recorded exception. */
const MESSAGE_MAX_CHARS = 500;

/** Runs a handler. It takes ownership of the question's payload. */
export async function runHookHandler(
  handler: AnyHandler,
  question: HookQuestion,
  signal: AbortSignal,
  run: HandlerSurroundings = NO_SURROUNDINGS,
): Promise<HookReply> {
  const { point } = question.registration;
  try {
    // The machine created the payload for this point, so it fits the schema.
    const payload = deeplyFrozen(fromWire(HOOK_PAYLOADS[point], question.payload as never) as JsonObject);
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
    idempotencyKey: `${ref.tenant}.${ref.sessionId}.${effectId}.${registration.id}`,
    signal,
    transcript: async () => shown(await asOurs(transcript)),
    messages: async () => shown((messages && (await asOurs(messages))) ?? []),
    feedback: (text: string) => {
      // The session would drop further feedback.
      said++;
      const told = String(text);
      if (said <= BOUNDS.feedbackPendingMax) asOurs(() => onFeedback(told));
    },
  });
}

/** A frozen copy with TypeScript names. */
function shown(messages: readonly Message[]): readonly CamelCased<Message>[] {
  return deeplyFrozen(fromWire(Messages, structuredClone([...messages])));
}

// Not recursive: models may nest arguments deeply.
function deeplyFrozen<T extends object>(root: T): T {
  const open: object[] = [root];
  for (let next = open.pop(); next; next = open.pop()) {
    Object.freeze(next);
    for (const member of Object.values(next)) if (typeof member === 'object' && member !== null) open.push(member);
  }
  return root;
}

// A handler may throw any value, even one that cannot be converted to text.
function messageOf(error: unknown): string {
  try {
    const text = error instanceof Error ? error.message || error.name : String(error);
    return text.length > MESSAGE_MAX_CHARS ? `${cutText(text, MESSAGE_MAX_CHARS)}…` : text;
  } catch {
    return 'it threw a value that cannot be converted to text';
  }
}
