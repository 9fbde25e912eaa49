/** Beats are kept in memory. A server that stands alone loses them with their bucket, and the hosts make it again. */
import { connectNats, createNatsHostLine, ensureStreams } from '@coxswain/adapter-nats';
import { STREAMS } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from './eventually.ts';
import { serverStartBoundMs, startTestServer, type TestServer } from './test-server.ts';

const log = { debug() {}, info() {}, warn() {}, error() {} };
const unheard = { beat: () => undefined, rung: () => undefined, released: () => undefined };

let server: TestServer;
let nc: NatsConnection;

beforeAll(async () => {
  server = await startTestServer();
  nc = await connectNats({ servers: server.url, token: server.token });
  await ensureStreams(nc);
}, serverStartBoundMs);
afterAll(async () => {
  await nc?.close();
  await server?.stop();
});

test('a host that comes after a restart of the server hears of one that was there before it', async () => {
  const [before, after] = [createNatsHostLine(nc, log), createNatsHostLine(nc, log)];
  await before.open('before', unheard);
  await server.restart();
  await eventually('beats are kept again', async () => {
    before.beat({ v: 1, host: 'before', state: 'serving', no: 1 });
    const info = await nc.request(`$JS.API.STREAM.INFO.KV_${STREAMS.hosts}`).catch(() => null);
    return (info?.json() as { state?: { messages: number } } | undefined)?.state?.messages === 1;
  });
  const heard: string[] = [];
  before.beat({ v: 1, host: 'before', state: 'serving', no: 2 });
  await after.open('after', { ...unheard, beat: ({ host }) => void heard.push(host) });
  expect(heard).toContain('before');
  before.close();
  after.close();
});
