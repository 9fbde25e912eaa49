/** Hook services and hosts on a real server: what is still there when the server was set up anew, or the module changed. */

import { startServer } from '@coxswain/adapter-embedded-server';
import { storeMessage } from '@coxswain/bus';
import type { HookHandlers, HookRequest } from '@coxswain/ports';
import {
  BOUNDS,
  DEFAULT_TENANT,
  type HookRegistration,
  STREAMS,
  sessionRef,
  subjects,
  TenantId,
} from '@coxswain/protocol';
import { afterEach, expect, onTestFinished, test, vi } from 'vitest';
import { eventually, realServerBinary, temporaryDir } from '../../embedded-server/test/server-binary.ts';
import { connectNats, createNatsHooks, ensureBuckets, type NatsHooks, serveHooks } from '../src/mod.ts';

const silent = () => undefined;
const log = { debug: silent, info: silent, warn: silent, error: silent };

const hook = (id: string): HookRegistration => ({
  id,
  pattern: '*',
  point: 'post_turn',
  priority: 0,
  timeout_ms: 5_000,
  on_error: 'fail_closed',
});
const answering = (...ids: string[]): HookHandlers => ({
  table: () => ids.map(hook),
  answer: async ({ registration }) => ({ status: 'returned', raw: `I am ${registration.id}` }),
});
const ask = (hooks: NatsHooks, id: string) => {
  const question: HookRequest = {
    ref: sessionRef('s1'),
    effectId: '1-0',
    registration: hook(id),
    payload: {},
    transcript: () => [],
    onFeedback: silent,
  };
  return hooks.ask(question, new AbortController().signal);
};
const idsIn = (hooks: NatsHooks) => hooks.table(DEFAULT_TENANT).map(({ id }) => id);

/** A server that can be set up anew, on the same port and without its store. */
async function ownServer() {
  const binary = await realServerBinary();
  let server = await startServer({ binary, stateDir: temporaryDir() });
  onTestFinished(() => server.stop());
  const { url, token, port } = server;
  return {
    connect: async () => {
      const nc = await connectNats({ servers: url, token, name: 'test' });
      onTestFinished(() => nc.close());
      return nc;
    },
    async setUpAnew() {
      await server.stop();
      server = await startServer({ binary, stateDir: temporaryDir(), port, token });
    },
  };
}

afterEach(() => {
  vi.useRealTimers();
});

test('a service that lives announces itself again where the server was set up anew, and is asked', async () => {
  const server = await ownServer();
  const nc = await server.connect();
  const served = await serveHooks(nc, log, { tenant: 'default', service: 'policy', handlers: answering('guard') });
  onTestFinished(() => served.stop());
  const before = await createNatsHooks(await server.connect(), log);
  expect(idsIn(before)).toEqual(['guard']);
  await before.stop();

  await server.setUpAnew();
  const after = await createNatsHooks(await server.connect(), log);
  onTestFinished(() => after.stop());
  await eventually('its hooks are registered', () => idsIn(after).includes('guard'));
  expect(await ask(after, 'guard')).toEqual({ status: 'returned', raw: 'I am guard' });
}, 60_000);

test('a host reads more hooks of a tenant than a table may have, and not all that it may announce', async () => {
  const server = await ownServer();
  const nc = await server.connect();
  await ensureBuckets(nc, [STREAMS.registry, STREAMS.hosts]);
  const announce = (tenant: string, service: string, hours: number, ids: readonly string[]) => {
    const value = { v: 1, service, since: new Date(hours * 3_600_000).toISOString(), registrations: ids.map(hook) };
    const key = subjects.announcement('hooks', TenantId.parse(tenant), service);
    return storeMessage(nc, 'announcing', key, Buffer.from(JSON.stringify(value)));
  };
  for (let n = 0; n < 8; n++)
    await announce(
      'many',
      `s${n}`,
      8 - n,
      Array.from({ length: BOUNDS.hooksMax }, (_, i) => `h${n}-${i}`),
    );
  await announce('other', 's', 0, ['guard']);
  const hooks = await createNatsHooks(nc, log);
  onTestFinished(() => hooks.stop());
  const table = hooks.table(TenantId.parse('many'));
  expect(table).toHaveLength(4 * BOUNDS.hooksMax);
  // The oldest service comes first.
  expect(table[0]?.id).toBe('h7-0');
  expect(hooks.table(TenantId.parse('other')).map(({ id }) => id)).toEqual(['guard']);
}, 60_000);

test('the last instance answers its open question before it stops', async () => {
  const server = await ownServer();
  const host = await createNatsHooks(await server.connect(), log);
  onTestFinished(() => host.stop());
  const gate: { asked: boolean; open: () => void } = { asked: false, open: silent };
  const slow: HookHandlers = {
    ...answering('guard'),
    async answer() {
      gate.asked = true;
      await new Promise<void>((resolve) => {
        gate.open = resolve;
      });
      return { status: 'returned', raw: 'at last' };
    },
  };
  const served = await serveHooks(await server.connect(), log, {
    tenant: 'default',
    service: 'policy',
    handlers: slow,
  });
  await eventually('its hooks are registered', () => idsIn(host).includes('guard'));
  const reply = ask(host, 'guard');
  await eventually('it is asked', () => gate.asked);
  const stopped = served.stop();
  await eventually('it is unavailable', () => host.table(DEFAULT_TENANT)[0]?.unavailable === true);
  gate.open();
  expect(await reply).toEqual({ status: 'returned', raw: 'at last' });
  await stopped;
}, 60_000);

test('a question whose only instance went without a word is not over: the next instance that starts is asked', async () => {
  const server = await ownServer();
  const host = await createNatsHooks(await server.connect(), log);
  onTestFinished(() => host.stop());
  const dying = await server.connect();
  let asked = false;
  const hanging: HookHandlers = {
    ...answering('guard'),
    answer: () => {
      asked = true;
      return new Promise(() => undefined);
    },
  };
  const first = await serveHooks(dying, log, { tenant: 'default', service: 'policy', handlers: hanging });
  onTestFinished(() => first.stop().catch(silent));
  await eventually('its hooks are registered', () => idsIn(host).includes('guard'));
  const reply = ask(host, 'guard');
  await eventually('it is asked', () => asked);
  await dying.close();
  await eventually('it is unavailable', () => host.table(DEFAULT_TENANT)[0]?.unavailable === true);
  const next = await serveHooks(await server.connect(), log, {
    tenant: 'default',
    service: 'policy',
    handlers: answering('guard'),
  });
  onTestFinished(() => next.stop());
  expect(await reply).toEqual({ status: 'returned', raw: 'I am guard' });
}, 60_000);

test('what a new version has taken back is answered for ten seconds more: sessions have to hear of it first', async () => {
  const server = await ownServer();
  const served = await serveHooks(await server.connect(), log, {
    tenant: 'default',
    service: 'policy',
    handlers: answering('old', 'kept'),
  });
  onTestFinished(() => served.stop());
  const hooks = await createNatsHooks(await server.connect(), log);
  onTestFinished(() => hooks.stop());
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  await served.update(answering('kept', 'new'));
  await eventually('the host has heard of it', () => idsIn(hooks).join() === 'kept,new');
  const answers = () => Promise.all(['old', 'kept', 'new'].map((id) => ask(hooks, id)));
  const told = (await answers()).map((reply) => (reply.status === 'returned' ? reply.raw : reply.code));
  expect(told).toEqual(['I am old', 'I am kept', 'I am new']);

  vi.advanceTimersByTime(9_999);
  expect(await ask(hooks, 'old')).toMatchObject({ status: 'returned' });
  vi.advanceTimersByTime(1);
  await eventually('nobody answers for it any more', async () => (await ask(hooks, 'old')).status === 'failed');
  expect(await ask(hooks, 'old')).toMatchObject({ code: 'hook_unavailable' });
  expect(await ask(hooks, 'kept')).toMatchObject({ status: 'returned' });
}, 60_000);

test('each of several updates keeps the earlier hooks for ten seconds, and a failed one changes nothing', async () => {
  const server = await ownServer();
  const nc = await server.connect();
  const serve = (service: string, ...ids: string[]) =>
    serveHooks(nc, log, { tenant: 'default', service, handlers: answering(...ids) });
  const other = await serve('other', 'taken');
  onTestFinished(() => other.stop());
  const served = await serve('policy', 'first');
  onTestFinished(() => served.stop());
  const hooks = await createNatsHooks(await server.connect(), log);
  onTestFinished(() => hooks.stop());
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const statuses = async () => {
    const replies = await Promise.all(['first', 'second', 'third'].map((id) => ask(hooks, id)));
    return replies.map(({ status }) => status);
  };
  const updated = served.update(answering('second'));
  await Promise.all([updated, served.update(answering('third'))]);
  await eventually('the host knows the last ones', () => idsIn(hooks).includes('third'));
  await expect(served.update(answering('taken'))).rejects.toMatchObject({ code: 'hook_id_taken' });
  expect(await statuses()).toEqual(['returned', 'returned', 'returned']);
  vi.advanceTimersByTime(9_999);
  expect(await statuses()).toEqual(['returned', 'returned', 'returned']);
  vi.advanceTimersByTime(1);
  await eventually('the earlier ones are no longer served', async () => (await statuses())[0] === 'failed');
  expect(await statuses()).toEqual(['failed', 'failed', 'returned']);
}, 60_000);
