/** A client that disconnects before its response is no error of the gateway. */
import { once } from 'node:events';
import { connect } from 'node:net';
import type { BusSession, SendOptions } from '@coxswain/client';
import { expect, test, vi } from 'vitest';
import { createMetrics, GATEWAY_BOUNDS, type GatewayClient, MemoryShares, ReadShares } from '../src/context/mod.ts';
import { appWithoutBus, SILENT } from './app-without-bus.ts';

/** An app whose sessions accept commands and never send a receipt. */
async function appThatWaits() {
  const error = vi.fn();
  const debug = vi.fn();
  const metrics = createMetrics();
  // A quarter of it is for one principal: two bodies of 12 bytes.
  const bodies = new MemoryShares(4 * 2 * (12 + GATEWAY_BOUNDS.requestBytes));
  const send = vi.fn(
    (_verb: string, _body: object, { signal }: SendOptions<'delivered'>) =>
      new Promise<never>((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason as Error))),
  );
  const session = { id: 's', ref: { tenant: 'default', sessionId: 's' }, lastNumber: async () => 1, wire: { send } };
  const { app, authorization } = await appWithoutBus({
    bodies,
    metrics,
    log: { ...SILENT, error, debug },
    clientOf: () => ({ session: () => session as unknown as BusSession }) as unknown as GatewayClient,
  });
  const url = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
  const head = `host: gateway.test\r\nauthorization: ${authorization}\r\ncontent-type: application/json`;
  const socket = connect({ host: url.hostname, port: Number(url.port) });
  const hasRoom = () => {
    const share = bodies.take(12, { name: 'tester', tenant: 'default', scopes: new Set(), expiresAt: null });
    share?.release();
    return share !== null;
  };
  return { app, head, socket, error, debug, metrics, send, hasRoom };
}

const STEER = 'POST /v1/sessions/s/steer?wait=delivered HTTP/1.1';

async function expectQuiet({ error, debug, metrics }: Awaited<ReturnType<typeof appThatWaits>>) {
  await vi.waitFor(() => expect(debug).toHaveBeenCalledWith(expect.anything(), expect.stringContaining('closed')), {
    timeout: 20_000,
  });
  expect(error).not.toHaveBeenCalled();
  const counted = await metrics.registry.metrics();
  expect(counted).not.toContain('code="internal"');
  expect(counted).toContain('coxswain_gateway_refused_total{code="request_closed"} 1');
  return counted;
}

test('a client that disconnects while it waits for a receipt is logged as closed, and its command is stored', async () => {
  const waiting = await appThatWaits();
  const { app, head, socket, send } = waiting;
  socket.write(`${STEER}\r\n${head}\r\ncontent-length: 12\r\n\r\n{"body":"x"}`);
  await vi.waitFor(() => expect(send).toHaveBeenCalled(), { timeout: 20_000 });
  socket.destroy();
  const counted = await expectQuiet(waiting);
  // The command is on the bus: only the waiting has ended.
  expect(counted).toContain('coxswain_gateway_commands_total{verb="steer",outcome="stored"} 1');
  await app.close();
});

test('a client that disconnects ends the waits of all its requests on the connection, and releases their memory', async () => {
  const { app, head, socket, send, hasRoom } = await appThatWaits();
  const one = `${STEER}\r\n${head}\r\ncontent-length: 12\r\n\r\n{"body":"x"}`;
  socket.write(one + one);
  await vi.waitFor(() => expect(send).toHaveBeenCalledTimes(2), { timeout: 20_000 });
  expect(hasRoom()).toBe(false);
  socket.destroy();
  await vi.waitFor(() => expect(hasRoom()).toBe(true), { timeout: 20_000 });
  expect(send.mock.calls.map(([, , { signal }]) => signal?.aborted)).toEqual([true, true]);
  await app.close();
});

test('a body without a length counts by its size once it is read, also while its request waits', async () => {
  const { app, head, socket, send } = await appThatWaits();
  for (const sent of [1, 2]) {
    socket.write(`${STEER}\r\n${head}\r\ntransfer-encoding: chunked\r\n\r\nc\r\n{"body":"x"}\r\n0\r\n\r\n`);
    await vi.waitFor(() => expect(send).toHaveBeenCalledTimes(sent), { timeout: 20_000 });
  }
  socket.destroy();
  await app.close();
});

test('requests without a body are bounded, too, while they wait', async () => {
  const { app, head, socket, send } = await appThatWaits();
  const cancel = `POST /v1/sessions/s/cancel?wait=accepted HTTP/1.1\r\n${head}\r\n\r\n`;
  // Two bodies of 12 bytes leave no room; requests without one need one more.
  socket.write(cancel.repeat(3));
  await vi.waitFor(() => expect(send).toHaveBeenCalledTimes(3), { timeout: 20_000 });
  const { hostname, port } = new URL(app.listeningOrigin);
  const other = connect({ host: hostname, port: Number(port) });
  other.write(cancel);
  const [answer] = await once(other, 'data');
  expect(String(answer)).toMatch(/^HTTP\/1.1 503 [\s\S]*"code":"gateway_busy"/);
  for (const one of [socket, other]) one.destroy();
  await app.close();
});

test('a client that disconnects within its body is logged as closed, and no command is sent', async () => {
  const waiting = await appThatWaits();
  const { app, head, socket, send } = waiting;
  const taken = new Promise((resolve) => app.server.once('request', resolve));
  socket.write(`${STEER}\r\n${head}\r\ncontent-length: 1200\r\n\r\n{"body":"x`);
  await taken;
  socket.destroy();
  await expectQuiet(waiting);
  expect(send).not.toHaveBeenCalled();
  await app.close();
});

test('a client that disconnects while it waits for a slot of reads leaves the queue', async () => {
  const started: (() => void)[] = [];
  const listSessions = () =>
    new Promise((resolve) => started.push(() => resolve({ sessions: [], next_cursor: null }))) as ReturnType<
      GatewayClient['wire']['listSessions']
    >;
  const reads = new ReadShares({ all: 1, waiting: 1 });
  const asked = vi.spyOn(reads, 'run');
  const debug = vi.fn();
  const { app, authorization } = await appWithoutBus({
    expensiveReads: reads,
    log: { ...SILENT, debug },
    clientOf: () => ({ wire: { listSessions } }) as unknown as GatewayClient,
  });
  const url = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
  const ask = () => {
    const socket = connect({ host: url.hostname, port: Number(url.port) });
    socket.write(`GET /v1/sessions HTTP/1.1\r\nhost: gateway.test\r\nauthorization: ${authorization}\r\n\r\n`);
    const answered = new Promise<string>((resolve) => socket.once('data', (bytes) => resolve(String(bytes))));
    return { socket, answered };
  };
  const first = ask();
  await vi.waitFor(() => expect(asked).toHaveBeenCalledTimes(1), { timeout: 20_000 });
  const left = ask();
  await vi.waitFor(() => expect(asked).toHaveBeenCalledTimes(2), { timeout: 20_000 });
  left.socket.destroy();
  await vi.waitFor(() => expect(debug).toHaveBeenCalledWith(expect.anything(), expect.stringContaining('closed')), {
    timeout: 20_000,
  });
  const third = ask();
  await vi.waitFor(() => expect(asked).toHaveBeenCalledTimes(3), { timeout: 20_000 });
  started[0]?.();
  expect(await first.answered).toMatch(/^HTTP\/1.1 200 /);
  await vi.waitFor(() => expect(started).toHaveLength(2), { timeout: 20_000 });
  started[1]?.();
  expect(await third.answered).toMatch(/^HTTP\/1.1 200 /);
  for (const { socket } of [first, third]) socket.destroy();
  await app.close();
});
