/** Converts questions to hooks to requests of served work, and their ends to replies. */
import {
  type AskEnd,
  type Asking,
  type AskTraits,
  type NoteProblem,
  type OfferedData,
  offerData,
  type ServedAddress,
} from '@coxswain/bus';
import type { HookReply, HookRequest } from '@coxswain/ports';
import { BOUNDS, type HookArgs, type JsonObject, type Message, SERVED_LIVENESS } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';

/** Questions to hooks in other processes, over one connection. */
export interface HookQuestions {
  /**
   * Asks a hook. A question may run several times; the first answer counts. Contract: never rejects. The caller bounds
   * the time.
   */
  ask(to: ServedAddress, request: HookRequest, signal: AbortSignal): Promise<HookReply>;
  /** Unsubscribes. */
  stop(): void;
}

/** The traits of a question that is answered within a time. */
export function questionTraits(timeoutMs: number): AskTraits {
  return {
    isRepeatable: true,
    isHeld: false,
    movesMax: MOVES_MAX,
    unacceptedMaxMs: Number.POSITIVE_INFINITY,
    // Time is usually left for the next instance.
    silentAfterMs: Math.min(SERVED_LIVENESS.ttlMs, Math.max(SILENT_MIN_MS, timeoutMs / 3)),
    endsAtAbort: true,
  };
}

/** How often a question may move. A question that crashes its handler must not crash all instances. */
const MOVES_MAX = 3;
/** Two heartbeat intervals, milliseconds. A shorter silence proves nothing. */
const SILENT_MIN_MS = 2 * SERVED_LIVENESS.heartbeatMs;

/** Creates the hook questions of a connection. */
export function createHookQuestions(
  nc: Pick<NatsConnection, 'subscribe'>,
  asking: Asking,
  noteProblem: NoteProblem,
): HookQuestions {
  const offered = offerData(nc, noteProblem);
  return {
    async ask(to, request, signal) {
      const { ref, effectId, registration, traceparent } = request;
      const offer = offered.offer(listOf(request));
      try {
        const end = await asking.ask(
          {
            key: `${ref.tenant}.${ref.sessionId}.${effectId}.${registration.id}`,
            ref,
            to,
            traits: questionTraits(registration.timeout_ms),
            request: { hook: registration.id, args: argsOf(request, offer.subject) },
            traceparent,
            onProgress: () => undefined,
            onFeedback: (text) => request.onFeedback(text),
          },
          signal,
        );
        return replyOf(end, request);
      } finally {
        offer.withdraw();
      }
    },
    stop: () => offered.stop(),
  };
}

function listOf({ messages, transcript }: HookRequest): Parameters<OfferedData['offer']>[0] {
  return (want) => (want === 'request' ? null : bytesOf(want === 'messages' ? (messages ?? []) : transcript()));
}

function argsOf({ registration, payload, messages }: HookRequest, fetch: string): JsonObject {
  const args: HookArgs = {
    point: registration.point,
    payload,
    timeout_ms: registration.timeout_ms,
    fetch,
    ...(messages ? { shows_messages: true as const } : {}),
  };
  return args as JsonObject;
}

function replyOf(end: AskEnd, { messages }: HookRequest): HookReply {
  if (end.type === 'ended') return unavailable('the response is not from a hook');
  if (end.type === 'accepted') return unavailable('a hook has no later outcome');
  if (end.type !== 'answered') return unavailable(end.message);
  const { answer } = end;
  if (answer.status === 'failed') return answer;
  if (answer.status === 'returned') return { status: 'returned', raw: answer.raw };
  const problem = viewProblem(answer.messages, messages ?? []);
  if (problem !== null) return unavailable(problem);
  const shown = answer.messages.map((one) => (typeof one === 'number' ? messages?.[one] : one));
  return { status: 'returned', raw: { messages: shown } };
}

/**
 * Checks a response before the messages are put together: a few bytes may name a long message, and name it often.
 * @returns the problem; null for a valid response.
 */
function viewProblem(named: readonly (number | Message)[], shown: readonly Message[]): string | null {
  const seen = new Set<number>();
  let bytes = 0;
  for (const one of named) {
    const message = typeof one === 'number' ? shown[one] : one;
    if (!message) return 'the response names unknown messages';
    if (typeof one === 'number' && seen.size === seen.add(one).size) return `the response names message ${one} twice`;
    bytes += Buffer.byteLength(JSON.stringify(message));
    if (bytes > BOUNDS.transformedViewMaxBytes)
      return `the response names messages of more than ${BOUNDS.transformedViewMaxBytes} bytes`;
  }
  return null;
}

function bytesOf(messages: readonly Message[]): Buffer {
  const bytes = Buffer.from(JSON.stringify(messages));
  if (bytes.length <= BOUNDS.transformedViewMaxBytes) return bytes;
  throw new Error(`the messages have ${bytes.length} bytes; the limit is ${BOUNDS.transformedViewMaxBytes}`);
}

/** A failed reply with code `hook_unavailable`: there is no valid answer. */
function unavailable(message: string): HookReply {
  return { status: 'failed', code: 'hook_unavailable', message };
}
