/** A live reader whose consumer the library gives up. */
import type { Consumer, ConsumerMessages } from '@nats-io/jetstream';
import { errors, type NatsConnection } from '@nats-io/nats-core';
import { expect, test } from 'vitest';
import { liveMessages } from '../src/ordered-follow.ts';

/** A connection to a server of an old version: no consumer can be opened. */
const nc = {
  options: {},
  isClosed: () => false,
  features: { get: () => ({ ok: false, min: 'the next version' }) },
} as unknown as NatsConnection;

/** A consumer that delivers nothing and fails. */
function consumer(failure: Error): Consumer {
  const messages = {
    [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(failure) }),
    async *status() {},
    stop: () => undefined,
    close: async () => undefined,
  } as unknown as ConsumerMessages;
  return { consume: async () => messages, delete: async () => true } as unknown as Consumer;
}

test.each([
  ['opens another consumer after an outage', new errors.TimeoutError(), 'the next version'],
  ['ends with any other error', new Error('broken'), 'broken'],
])('%s', async (_what, failure, ends) => {
  const source = { nc, stream: 's', options: { filter_subjects: 'a' } };
  await expect(liveMessages(source, consumer(failure), { max_messages: 1 }).next()).rejects.toThrow(ends);
});
