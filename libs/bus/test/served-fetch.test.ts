/** Data that a host offers to the instances of services, without a server. */
import { HEADERS, type WorkFetch } from '@coxswain/protocol';
import { headers, type Msg, type NatsConnection } from '@nats-io/nats-core';
import { expect, test } from 'vitest';
import { fetchWhole, offerData } from '../src/mod.ts';

const REPLY = '_INBOX.instance.1';

/** A host, and the answers to fetches of an instance. */
function host() {
  let receive: (error: Error | null, message: Msg) => void = () => undefined;
  const nc = {
    subscribe(_subject: string, { callback }: { callback: typeof receive }) {
      receive = callback;
      return { unsubscribe: () => undefined };
    },
  } as unknown as NatsConnection;
  const problems: string[] = [];
  const offered = offerData(nc, (_about, message) => void problems.push(message));
  const fetch = (subject: string, want: string, reply: string = REPLY) => {
    const answers: object[] = [];
    const respond: Msg['respond'] = (data, { headers } = {}) => {
      const said = { data: Buffer.from(data ?? '').toString(), error: headers?.get(HEADERS.error) };
      return answers.push(said) > 0;
    };
    const data = Buffer.from(JSON.stringify({ want, offset: 0 } as WorkFetch));
    receive(null, { subject, data, reply, respond } as Partial<Msg> as Msg);
    return answers;
  };
  return { offered, problems, fetch };
}

const refused = [{ data: '', error: 'query_failed' }];

test('an instance gets the offered data until it is withdrawn, then an error at once', () => {
  const { offered, fetch } = host();
  const { subject, withdraw } = offered.offer(() => Buffer.from('[1]'));
  expect(fetch(subject, 'messages')).toEqual([{ data: '[1]', error: '' }]);
  withdraw();
  expect(fetch(subject, 'messages')).toEqual(refused);
});

test.each([
  ['data that the host does not have', () => null, 'request'],
  ['an unknown list', () => Buffer.from('[]'), 'everything'],
])('a fetch of %s gets an error at once', (_what, build, want) => {
  const { offered, fetch } = host();
  expect(fetch(offered.offer(build).subject, want)).toEqual(refused);
});

test('data that is too long is built once, and the problem is noted once', () => {
  const { offered, fetch, problems } = host();
  let built = 0;
  const { subject } = offered.offer(() => {
    built++;
    throw new Error('too long');
  });
  for (let i = 0; i < 3; i++) expect(fetch(subject, 'messages')).toEqual(refused);
  expect(built).toBe(1);
  expect(problems).toEqual(['data that an instance requested could not be sent']);
});

test('a fetch whose reply subject is not an inbox gets no answer', () => {
  const { offered, fetch } = host();
  const { subject } = offered.offer(() => Buffer.from('[1]'));
  expect(fetch(subject, 'messages', 'cox.default.session.s1.cancel')).toEqual([]);
});

test('an instance that loses its connection during a fetch gets the data when it is connected again', async () => {
  let receive: (error: Error | null, message: Msg) => void = () => undefined;
  let change: (type: string) => void = () => undefined;
  let requests = 0;
  const nc = {
    subscribe(_subject: string, { callback }: { callback: typeof receive }) {
      receive = callback;
      return { isClosed: () => false };
    },
    closed: () => new Promise(() => undefined),
    async *status() {
      for (;;)
        yield await new Promise<object>((resolve) => {
          change = (type) => resolve({ type });
        });
    },
    publish(_subject: string, _data: Uint8Array, { reply }: { reply: string }) {
      requests++;
      if (requests === 1) {
        change('disconnect');
        setImmediate(() => change('reconnect'));
        return;
      }
      const head = headers();
      head.set(HEADERS.total, '3');
      receive(null, { subject: reply, data: Buffer.from('[1]'), headers: head } as Partial<Msg> as Msg);
    },
  } as unknown as NatsConnection;
  expect(await fetchWhole(nc, '_INBOX.host.1', 'transcript', 100)).toBe('[1]');
  expect(requests).toBe(2);
});
