/** A rewrite that is interrupted while a replica is removed. */
import { type Msg, MsgHdrsImpl, type NatsConnection, type Subscription } from '@nats-io/nats-core';
import { expect, test } from 'vitest';
import { rewriteStream } from '../src/rewrite-stream.ts';

type Callback = (error: Error | null, message: Msg) => void;
interface Config {
  num_replicas: number;
  metadata: Record<string, string>;
}

/** A cluster with one empty stream. Once it has two replicas, `onReduced` is called; while `refuses`, it has to stay so. */
function cluster(replicas: number) {
  const all = ['n1', 'n2', 'n3'];
  let members = all.slice(0, replicas);
  let leader = 'n1';
  let config: Config = { num_replicas: replicas, metadata: { coxswain_compressed_blocks: 'true' } };
  let turn = 0;
  const callbacks = new Map<string, Callback>();
  const seen = { counts: [] as number[], refuses: false, onReduced: () => {} };
  const deliver = (subject: string, text: string, headers?: MsgHdrsImpl) => {
    const prefix = [...callbacks.keys()].find((one) => subject.startsWith(one)) ?? '';
    const message = { subject, data: Buffer.from(text), headers, string: () => text, json: () => JSON.parse(text) };
    queueMicrotask(() => callbacks.get(prefix)?.(null, message as unknown as Msg));
  };
  const apiAnswer = (subject: string, body: string) => {
    if (subject.includes('.STEPDOWN.')) leader = JSON.parse(body).placement.preferred;
    if (subject.includes('.UPDATE.')) {
      const next: Config = JSON.parse(body);
      if (seen.refuses && members.length === 2)
        return { error: { code: 400, err_code: 10_005, description: 'no suitable peers' } };
      config = next;
      if (next.num_replicas < members.length)
        members = members.filter((name) => name !== members.find((n) => n !== leader));
      else members = [...members, ...all.filter((name) => !members.includes(name))].slice(0, next.num_replicas);
      seen.counts.push(members.length);
      if (members.length === 2) seen.onReduced();
    }
    const others = members.filter((name) => name !== leader).map((name) => ({ name, current: true }));
    return { config, state: { messages: 0, first_seq: 1, last_seq: 0 }, cluster: { leader, replicas: others } };
  };
  const nc = {
    isClosed: () => false,
    closed: () => new Promise(() => undefined),
    status: () => (async function* () {})(),
    subscribe(subject: string, { callback }: { callback: Callback }) {
      callbacks.set(subject.replace(/(\.\*)+$/, '.'), callback);
      return { isClosed: () => false, unsubscribe: () => undefined } as unknown as Subscription;
    },
    publish(subject: string, body: Uint8Array | string, { reply, headers }: { reply: string; headers?: MsgHdrsImpl }) {
      if (!subject.includes('.DIRECT.'))
        return deliver(reply, JSON.stringify(apiAnswer(subject, Buffer.from(body).toString())));
      const name = members[turn++ % members.length];
      deliver(headers?.get('Nats-Trace-Dest') ?? '', JSON.stringify({ server: { name }, hops: 0 }));
      deliver(reply, '', new MsgHdrsImpl(404, ''));
    },
  } as unknown as NatsConnection;
  return { nc, seen, config: () => config };
}

const ignore = () => {};

test('a run after one that could not restore the replicas resumes from their configured number', async () => {
  const { nc, seen, config } = cluster(3);
  seen.refuses = true;
  await expect(rewriteStream(nc, 'S', ignore)).rejects.toThrow(/rewrite_stopped.*could not be restored/);
  expect(config()).toMatchObject({ num_replicas: 2, metadata: { coxswain_rewrite_replicas: '3' } });
  seen.refuses = false;
  expect((await rewriteStream(nc, 'S', ignore)).servers.toSorted()).toEqual(['n1', 'n2', 'n3']);
  expect(Math.min(...seen.counts)).toBe(2);
  expect(config()).toEqual({ num_replicas: 3, metadata: {} });
});

test('a signal ends the rewrite with its replicas restored', async () => {
  const { nc, seen, config } = cluster(3);
  const interrupted = new AbortController();
  seen.onReduced = () => interrupted.abort();
  await expect(rewriteStream(nc, 'S', ignore, interrupted.signal)).rejects.toThrow(/rewrite_stopped.*interrupted/);
  expect(seen.counts).toContain(2);
  expect(config()).toEqual({ num_replicas: 3, metadata: { coxswain_compressed_blocks: 'true' } });
});

test('two replicas are not rewritten: one would be left', async () => {
  const { nc, seen } = cluster(2);
  await expect(rewriteStream(nc, 'S', ignore)).rejects.toThrow('rewrite_stopped');
  expect(seen.counts).toEqual([]);
});
