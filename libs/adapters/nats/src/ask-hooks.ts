import { randomUUID } from 'node:crypto';
import { inboxPrefixOf, onConnectionChange, STATUS, statusOf, tracedBy } from '@coxswain/bus';
import type { HookReply, HookRequest, Log } from '@coxswain/ports';
import {
  BOUNDS,
  HEADERS,
  HOOK_ENVELOPE_MAX_BYTES,
  HOOK_PART_BYTES,
  HookAnswered,
  type HookAsked,
  HookCallback,
  type Message,
} from '@coxswain/protocol';
import { createInbox, headers, type Msg, type NatsConnection } from '@nats-io/nats-core';

/**
 * Questions to hook handlers in other processes, over one connection.
 *
 * B3: An answer is untrusted: its size is limited, it is validated, and it counts only if it names its question. Its
 *     subject cannot be derived from the subject of another question.
 * B4: A lost connection is not an answer: open questions are sent again each time the connection is restored.
 */
export interface HookQuestions {
  /**
   * Sends a question to a subject and waits for the reply. Contract: never rejects. The caller bounds the time.
   * @param onTaken called with the instance that confirms that it has the question.
   * @returns the reply; null if the server reports "no responders".
   */
  ask(
    subject: string,
    request: HookRequest,
    signal: AbortSignal,
    onTaken: (instance: string) => void,
  ): Promise<HookReply | null>;
  /** Whether NATS is connected. While it is not, the silence of an instance proves nothing. */
  isConnected(): boolean;
  /** Unsubscribes. Open questions fail with `hook_unavailable`. */
  stop(): void;
}

interface Pending {
  readonly request: HookRequest;
  /** Publishes the question, or publishes it again. */
  send(): void;
  settle(reply: HookReply | null): void;
  readonly onTaken: (instance: string) => void;
  /** The lists that handlers fetch in parts, serialized at the first request. */
  readonly lists: Map<'transcript' | 'messages', Buffer>;
}

/** Creates the hook questions of this connection. */
export function createHookQuestions(nc: NatsConnection, log: Log): HookQuestions {
  const pending = new Map<string, Pending>();
  const inbox = createInbox(inboxPrefixOf(nc));
  let connected = true;
  const endListening = onConnectionChange(nc, {
    lost() {
      connected = false;
    },
    restored() {
      connected = true;
      for (const { send } of [...pending.values()]) send();
    },
  });
  const subscriptions = [
    nc.subscribe(`${inbox}.r.*`, {
      callback: (error, message) => {
        const one = error ? undefined : pending.get(message.subject.slice(inbox.length + 3));
        if (one) one.settle(statusOf(message) === STATUS.noResponders ? null : replyOf(message, one.request));
      },
    }),
    nc.subscribe(`${inbox}.c.*`, {
      callback: (error, message) => {
        const one = error ? undefined : pending.get(message.subject.slice(inbox.length + 3));
        if (one) serveCallback(message, one, log);
      },
    }),
  ];
  return {
    ask(subject, request, signal, onTaken) {
      const token = randomUUID();
      return new Promise((resolve) => {
        const settle = (reply: HookReply | null) => {
          pending.delete(token);
          signal.removeEventListener('abort', aborted);
          resolve(reply);
        };
        const aborted = () => settle(unavailable('the host no longer waits for it'));
        const send = () => {
          try {
            const body = JSON.stringify(asked(request, `${inbox}.c.${token}`));
            nc.publish(subject, body, { reply: `${inbox}.r.${token}`, ...tracedBy(request.traceparent) });
          } catch (error) {
            settle(unavailable(`it could not be asked: ${(error as Error).message}`));
          }
        };
        pending.set(token, { request, send, settle, onTaken, lists: new Map() });
        send();
        // The client flushes published messages in the first microtask. The abort handling must not delay that.
        queueMicrotask(() => {
          if (!pending.has(token)) return;
          if (signal.aborted) aborted();
          else signal.addEventListener('abort', aborted, { once: true });
        });
      });
    },
    isConnected: () => connected,
    stop() {
      endListening();
      for (const subscription of subscriptions) subscription.unsubscribe();
      for (const { settle } of [...pending.values()]) settle(unavailable('the host stops'));
    },
  };
}

function asked(request: HookRequest, callback: string): HookAsked {
  const { ref, effectId, registration, payload, messages } = request;
  return {
    v: 1,
    hook: registration.id,
    session_id: ref.sessionId,
    effect_id: effectId,
    point: registration.point,
    payload,
    timeout_ms: registration.timeout_ms,
    callback,
    ...(messages ? { shows_messages: true as const } : {}),
  };
}

function replyOf(message: Msg, { ref, effectId, registration, messages }: HookRequest): HookReply {
  const bytes = message.data.length;
  if (bytes > BOUNDS.hookPayloadMaxBytes + HOOK_ENVELOPE_MAX_BYTES) {
    const told = `the answer has ${bytes} bytes; the limit is ${BOUNDS.hookPayloadMaxBytes}`;
    return { status: 'failed', code: 'return_unreadable', message: told };
  }
  let value: unknown;
  try {
    value = message.json();
  } catch {
    return unavailable('the response is not JSON');
  }
  const parsed = HookAnswered.safeParse(value);
  if (!parsed.success) return unavailable('the response is not from a hook service');
  const answer = parsed.data;
  if (answer.hook !== registration.id || answer.session_id !== ref.sessionId || answer.effect_id !== effectId)
    return unavailable('the response is for another request');
  if (answer.status === 'failed') return { status: 'failed', code: answer.code, message: answer.message };
  if (answer.status === 'returned') return { status: 'returned', raw: answer.raw };
  const shown = answer.messages.map((one) => (typeof one === 'number' ? messages?.[one] : one));
  if (shown.includes(undefined)) return unavailable('the response names unknown messages');
  return { status: 'returned', raw: { messages: shown } };
}

function serveCallback(message: Msg, { request, onTaken, lists }: Pending, log: Log): void {
  try {
    const wanted = HookCallback.safeParse(message.json());
    if (!wanted.success) return;
    const { data } = wanted;
    if (data.want === 'feedback') {
      request.onFeedback(data.text);
      return;
    }
    if (data.want === 'taken') {
      onTaken(data.instance);
      return;
    }
    const list =
      lists.get(data.want) ?? bytesOf(data.want === 'messages' ? (request.messages ?? []) : request.transcript());
    lists.set(data.want, list);
    const head = headers();
    head.set(HEADERS.total, String(list.length));
    message.respond(list.subarray(data.offset, data.offset + HOOK_PART_BYTES), { headers: head });
  } catch (error) {
    log.warn({ hook: request.registration.id, error }, 'what a handler wanted could not be given');
  }
}

function bytesOf(messages: readonly Message[]): Buffer {
  const bytes = Buffer.from(JSON.stringify(messages));
  if (bytes.length <= BOUNDS.transformedViewMaxBytes) return bytes;
  throw new Error(`the messages have ${bytes.length} bytes; the limit is ${BOUNDS.transformedViewMaxBytes}`);
}

/** A failed reply with code `hook_unavailable`: there is no valid answer. */
export function unavailable(message: string): HookReply {
  return { status: 'failed', code: 'hook_unavailable', message };
}
