/** A connection to a NATS that is a function: it answers requests, and nothing else is on it. */
import type { Msg, MsgHdrs, NatsConnection, PublishOptions, SubscriptionOptions } from '@nats-io/nats-core';

/** A message that was published. */
export interface Published {
  readonly subject: string;
  readonly text: string;
  readonly headers: MsgHdrs | undefined;
}

/** The body of the answer to a request; undefined for no answer. */
export type AnswerRequest = (published: Published) => object | undefined;

/** An answer of JetStream: it stores nothing, and does not say why. */
export const NO_LEADER = { error: { code: 503, err_code: 10_008, description: 'no leader' } };
/** An answer of JetStream: the stream is full. */
export const FULL = { error: { code: 503, err_code: 10_077, description: 'maximum bytes exceeded' } };
/** An answer of JetStream: the stream has no message on the subject. */
export const NO_MESSAGE = { error: { code: 404, err_code: 10_037, description: 'no message found' } };

/** Creates the connection. */
export function storeConnection(answer: AnswerRequest) {
  const published: Published[] = [];
  const listeners = new Map<string, NonNullable<SubscriptionOptions['callback']>>();
  const deliver = (subject: string, body: object) => {
    const [, callback] = [...listeners].find(([pattern]) => subject.startsWith(pattern)) ?? [];
    const text = JSON.stringify(body);
    callback?.(null, { subject, data: Buffer.from(text), string: () => text } as unknown as Msg);
  };
  const nc = {
    subscribe(subject: string, { callback = () => undefined }: SubscriptionOptions) {
      const pattern = subject.replace(/\*$/, '');
      listeners.set(pattern, callback);
      const unsubscribe = () => void listeners.delete(pattern);
      return { unsubscribe, drain: async () => unsubscribe(), isClosed: () => !listeners.has(pattern) };
    },
    publish(subject: string, data: Uint8Array | string, { reply, headers }: PublishOptions = {}) {
      const message = { subject, text: Buffer.from(data).toString(), headers };
      published.push(message);
      const body = reply === undefined ? undefined : answer(message);
      if (reply !== undefined && body) queueMicrotask(() => deliver(reply, body));
    },
    flush: async () => undefined,
    closed: () => new Promise(() => undefined),
    async *status() {
      await new Promise(() => undefined);
    },
    isClosed: () => false,
  } as unknown as NatsConnection;
  return {
    nc,
    published,
    /** Delivers a message to the subscription of this subject. */
    deliver,
    /** The subjects of the open subscriptions, without a wildcard at the end. */
    subscribed: () => [...listeners.keys()],
  };
}
