/** Commands over a WebSocket, and the answers to them. */
import { once } from 'node:events';
import { CommandId } from '@coxswain/protocol';
import { RequestRates } from '@coxswain/session';
import type { FastifyRequest } from 'fastify';
import { afterEach, expect, test, vi } from 'vitest';
import { WebSocket } from 'ws';
import { type ContextParts, createContext } from '../src/app/mod.ts';
import type { Scope } from '../src/auth/mod.ts';
import { GATEWAY_BOUNDS, MemoryShares } from '../src/context/mod.ts';
import { SocketCommands } from '../src/socket/mod.ts';
import { appWithSessions, Sessions } from './app-with-sessions.ts';
import { SILENT } from './app-without-bus.ts';

const opened: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of opened.splice(0)) await one.close();
});

/**
 * Opens a WebSocket on a session. By default, the session never answers a command.
 * @param burst how many commands the token may send at once.
 */
async function openSocket(
  burst: number,
  change: Partial<Sessions> = {},
  scopes: readonly Scope[] = ['admin'],
  parts: Partial<ContextParts> = {},
) {
  const principal = { name: 'ada', tenant: 'default', scopes: new Set(scopes), expiresAt: null };
  const { app, sessions, stopping } = await appWithSessions({
    authenticator: { authenticate: async () => principal },
    // The request that opens the socket counts as well.
    rates: new RequestRates(burst + 1, 1, 10, () => 0),
    ...parts,
  });
  Object.assign(sessions, { answer: () => new Promise(() => undefined), ...change });
  const { host } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
  const headers = { host: 'gateway.test', authorization: 'Bearer t' };
  const socket = new WebSocket(`ws://${host}/v1/sessions/s/ws?from=newest`, { headers });
  const answers: { ref?: unknown; problem?: { code: string } }[] = [];
  socket.on('message', (data) => answers.push(JSON.parse(String(data))));
  opened.push({
    close: async () => {
      stopping.abort();
      await app.close();
    },
  });
  await once(socket, 'open');
  const sayText = (text: string) => socket.send(text);
  const answered = (count: number) => vi.waitFor(() => expect(answers).toHaveLength(count), { timeout: 20_000 });
  return { say: (message: object) => sayText(JSON.stringify(message)), sayText, answers, answered, sessions };
}

const NO_BUS = {
  authenticator: { authenticate: async () => null },
  clientOf: () => null,
  ping: async () => undefined,
  log: SILENT,
  now: () => 0,
  stopping: new AbortController().signal,
};
const steer = (ref: string | number) => ({ type: 'command', ref, verb: 'steer', body: { body: 'x' } });

test('commands beyond those that may wait for receipts are rejected by their refs', async () => {
  const { say, answers, answered } = await openSocket(1_000);
  const max = GATEWAY_BOUNDS.socketCommandsMax;
  for (let ref = 1; ref <= max + 2; ref++) say(steer(ref));
  await answered(2);
  expect(answers).toMatchObject([
    { ref: max + 1, problem: { code: 'rate_limited' } },
    { ref: max + 2, problem: { code: 'rate_limited' } },
  ]);
});

test('commands that wait for their receipts occupy the memory of bodies, until they are answered', async () => {
  const bytes = Buffer.byteLength(JSON.stringify(steer(1))) + GATEWAY_BOUNDS.requestBytes;
  const finish: (() => void)[] = [];
  const stored = { commandId: CommandId.parse('mine'), seq: 7, duplicate: false };
  const answer = () => new Promise<typeof stored>((resolve) => finish.push(() => resolve(stored)));
  // A quarter of it is for one principal: two commands.
  const bodies = new MemoryShares(4 * 2 * bytes);
  const { say, answers, answered } = await openSocket(1_000, { answer }, ['admin'], { bodies });
  for (const ref of [1, 2, 3]) say(steer(ref));
  await answered(1);
  expect(answers).toMatchObject([{ ref: 3, problem: { code: 'gateway_busy' } }]);
  finish[0]?.();
  await answered(2);
  say(steer(4));
  await vi.waitFor(() => expect(finish).toHaveLength(3), { timeout: 20_000 });
});

test('a command that arrives while the connection closes is ignored', async () => {
  const commands = async (leaving: AbortSignal) => {
    const sessions = new Sessions();
    const request = { principal: { name: 'ada', tenant: 'default', scopes: new Set(['admin']), expiresAt: null } };
    const context = createContext({ ...NO_BUS, stopping: leaving });
    const connection = { signal: leaving, checkAccess: async () => null };
    const socket = { readyState: 2, OPEN: 1, bufferedAmount: 0 } as unknown as WebSocket;
    new SocketCommands(context, sessions.of('s'), request as unknown as FastifyRequest, socket, connection).handle(
      Buffer.from(JSON.stringify(steer('one'))),
      false,
    );
    await new Promise((resolve) => setImmediate(resolve));
    return sessions.sent;
  };
  expect(await commands(new AbortController().signal)).toMatchObject([{ verb: 'steer' }]);
  expect(await commands(AbortSignal.abort())).toEqual([]);
});

test('answers that clients do not read share memory; beyond it, the connection is closed', async () => {
  const principal = { name: 'ada', tenant: 'default', scopes: new Set<Scope>(['admin']), expiresAt: null };
  // A quarter of it is for one principal: the answers of about two sockets with one answer each.
  const context = createContext({ ...NO_BUS, socketMessages: new MemoryShares(4 * 1_500) });
  const connect = () => {
    const read: (() => void)[] = [];
    const send = (_bytes: Buffer, _options: object, written: () => void) => void read.push(written);
    const socket = { readyState: 1, OPEN: 1, send, terminate: vi.fn() };
    const connection = { signal: new AbortController().signal, checkAccess: async () => null };
    const request = { principal } as unknown as FastifyRequest;
    const session = new Sessions().of('s');
    const commands = new SocketCommands(context, session, request, socket as unknown as WebSocket, connection);
    const ask = async () => {
      commands.handle(Buffer.from('{'), false);
      await new Promise((resolve) => setImmediate(resolve));
    };
    return { ask, read, terminate: socket.terminate };
  };
  const [first, second, third] = [connect(), connect(), connect()];
  await first.ask();
  await second.ask();
  first.read[0]?.();
  await third.ask();
  expect([first, second, third].map(({ read }) => read.length)).toEqual([1, 1, 1]);
  await first.ask();
  expect(first.terminate).toHaveBeenCalledTimes(1);
  expect(second.terminate).not.toHaveBeenCalled();
});

test('commands beyond the rate limit of the token are rejected by their refs', async () => {
  const { say, answers, answered } = await openSocket(1);
  for (const ref of ['one', 'two']) say(steer(ref));
  await answered(1);
  expect(answers).toMatchObject([{ ref: 'two', problem: { code: 'rate_limited' } }]);
});

test('a prompt that may become a steer needs both scopes', async () => {
  const { say, answers, answered } = await openSocket(10, {}, ['read', 'run']);
  say({ type: 'command', ref: 'one', verb: 'prompt', body: { body: 'go', if_running: 'steer' } });
  await answered(1);
  expect(answers).toMatchObject([{ ref: 'one', problem: { code: 'scope_missing', field: 'if_running' } }]);
});

test.each([
  ['text that is not JSON', '{'],
  ['a repeated member', '{"verb":"cancel","verb":"cancel"}'],
  ['an unknown verb', '{"type":"command","ref":"one","verb":"steeer"}'],
])('%s counts towards the rate limit', async (_what, text) => {
  const { say, sayText, answers, answered } = await openSocket(1);
  sayText(text);
  say(steer('two'));
  await answered(2);
  expect(answers.find(({ ref }) => ref === 'two')).toMatchObject({ problem: { code: 'rate_limited' } });
});

test('a command has its own id as command_id and its target as target_command_id; the names on NATS are rejected', async () => {
  const answer = async () => ({ commandId: CommandId.parse('mine'), seq: 7, duplicate: false });
  const { say, answers, answered, sessions } = await openSocket(1_000, { answer });
  const revoke = (body: object) => say({ type: 'command', verb: 'revoke', body });
  revoke({ command_id: 'mine', target_command_id: 'waits' });
  await answered(1);
  expect(sessions.sent).toMatchObject([
    { verb: 'revoke', body: { id: 'mine', command_id: 'waits' }, options: { id: 'mine' } },
  ]);
  expect(answers).toMatchObject([{ type: 'sent', command_id: 'mine', seq: 7 }]);
  revoke({ id: 'mine', target_command_id: 'waits' });
  await answered(2);
  expect(answers[1]).toMatchObject({
    problem: { code: 'unknown_field', field: 'id', detail: expect.stringContaining('own id is "command_id"') },
  });
  expect(sessions.sent).toHaveLength(1);
});

test('a command_id that another command has used is rejected', async () => {
  const recorded = [{ type: 'command', verb: 'cancel', command_id: 'mine', body: {} }];
  const answer = async () => ({ commandId: CommandId.parse('mine'), seq: 7, duplicate: true });
  const { say, answers, answered } = await openSocket(1_000, { answer, recorded });
  for (const verb of ['cancel', 'suspend']) say({ type: 'command', ref: verb, verb, body: { command_id: 'mine' } });
  await answered(2);
  expect(answers.toSorted((one, other) => String(one.ref).localeCompare(String(other.ref)))).toMatchObject([
    { ref: 'cancel', type: 'sent' },
    { ref: 'suspend', problem: { code: 'command_id_reused', field: 'command_id' } },
  ]);
});

test('messages that are not complete share memory; beyond it, the connection is closed', async () => {
  const expiresAt = null;
  const { app, stopping } = await appWithSessions({
    authenticator: {
      authenticate: async (name) => ({ name, tenant: 'default', scopes: new Set(['admin']), expiresAt }),
    },
    // A quarter of it for each principal.
    socketMessages: new MemoryShares(4 * 100_000),
  });
  opened.push({
    close: async () => {
      stopping.abort();
      await app.close();
    },
  });
  const { host } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
  const connect = async (name: string, path = 'ws') => {
    const headers = { host: 'gateway.test', authorization: `Bearer ${name}` };
    const socket = new WebSocket(`ws://${host}/v1/sessions/s/${path}?from=newest`, { headers });
    await once(socket, 'open');
    return socket;
  };
  const command = (ref: string) => {
    const text = JSON.stringify({ ...steer(ref), body: { body: 'x'.repeat(60_000) } });
    return [text.slice(0, 55_000), text.slice(55_000)] as const;
  };
  // Complete messages occupy nothing, and neither do pings.
  const first = await connect('ada');
  const pong = async () => {
    first.ping();
    await once(first, 'pong');
  };
  for (const ref of ['one', 'two', 'three']) {
    const answer = once(first, 'message');
    first.send(command(ref).join(''));
    expect(JSON.parse(String((await answer)[0]))).toMatchObject({ type: 'sent', ref });
  }
  for (let count = 0; count < 20; count++) await pong();
  const [start, end] = command('four');
  first.send(start, { fin: false });
  await pong();
  const second = await connect('ada', 'inspect');
  second.send(start, { fin: false });
  second.ping();
  await once(second, 'pong');
  // Both have exceeded the share of the principal.
  const third = await connect('ada');
  const closed = once(third, 'close');
  third.send(start, { fin: false });
  await closed;
  // Others have their own share, and a message that is complete makes room.
  const other = await connect('bob');
  other.send(start, { fin: false });
  const answer = once(first, 'message');
  first.send(end);
  expect(JSON.parse(String((await answer)[0]))).toMatchObject({ type: 'sent', ref: 'four' });
  const fourth = await connect('ada');
  const sent = once(fourth, 'message');
  fourth.send(command('five').join(''));
  expect(JSON.parse(String((await sent)[0]))).toMatchObject({ type: 'sent', ref: 'five' });
  expect(other.readyState).toBe(WebSocket.OPEN);
});

test.each([
  ['removed', () => null],
  ['expired, and cannot be checked', () => Promise.reject(new Error('no keys'))],
])('a command is rejected immediately if its token was %s', async (_how, authenticateNow) => {
  let isLost = false;
  const principal = { name: 'ada', tenant: 'default', scopes: new Set<Scope>(['admin']), expiresAt: 5 };
  const { app, sessions, stopping } = await appWithSessions({
    authenticator: { authenticate: async () => (isLost ? authenticateNow() : principal) },
    now: () => (isLost ? 5 : 4),
  });
  opened.push({
    close: async () => {
      stopping.abort();
      await app.close();
    },
  });
  const { host } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
  const headers = { host: 'gateway.test', authorization: 'Bearer t' };
  const socket = new WebSocket(`ws://${host}/v1/sessions/s/ws?from=newest`, { headers });
  const answers: object[] = [];
  socket.on('message', (data) => answers.push(JSON.parse(String(data))));
  await once(socket, 'open');
  const closed = once(socket, 'close');
  isLost = true;
  for (const ref of ['one', 'two']) socket.send(JSON.stringify(steer(ref)));
  expect(String((await closed)[1])).toBe('unauthorized');
  expect(sessions.sent).toEqual([]);
  expect(answers[0]).toMatchObject({ ref: 'one', problem: { code: 'unauthorized' } });
});

test('commands keep their order, however long each check of the token takes', async () => {
  const principal = { name: 'ada', tenant: 'default', scopes: new Set<Scope>(['admin']), expiresAt: null };
  const checks: (() => void)[] = [];
  let isOpen = false;
  const { app, sessions, stopping } = await appWithSessions({
    authenticator: {
      authenticate: async () => {
        if (isOpen) await new Promise<void>((resolve) => checks.push(resolve));
        return principal;
      },
    },
  });
  opened.push({
    close: async () => {
      stopping.abort();
      await app.close();
    },
  });
  const { host } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
  const headers = { host: 'gateway.test', authorization: 'Bearer t' };
  const socket = new WebSocket(`ws://${host}/v1/sessions/s/ws?from=newest`, { headers });
  await once(socket, 'open');
  isOpen = true;
  const all = ['one', 'two', 'three'];
  for (const text of all)
    socket.send(JSON.stringify({ type: 'command', verb: 'steer', body: { body: text, command_id: text } }));
  // The newest check that waits ends first.
  await vi.waitFor(
    () => {
      checks.pop()?.();
      expect(sessions.sent).toHaveLength(all.length);
    },
    { timeout: 20_000 },
  );
  expect(sessions.sent.map(({ options }) => options.id)).toEqual(all);
});
