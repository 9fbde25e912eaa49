/** Whoever goes away before the answer is nobody's fault: nothing to mend, and nothing to be woken for. */
import { connect } from 'node:net';
import type { BusSession, SendOptions } from '@coxswain/client';
import { expect, test, vi } from 'vitest';
import type { GatewayClient } from '../src/gateway-context.ts';
import { createMetrics } from '../src/gateway-metrics.ts';
import { LimitedReads } from '../src/limited-reads.ts';
import { appOnNothing, SILENT } from './app-on-nothing.ts';

/** An app whose sessions take commands and never say what became of them. */
async function appThatWaits() {
  const error = vi.fn();
  const debug = vi.fn();
  const metrics = createMetrics();
  const send = vi.fn(
    (_verb: string, _body: object, { signal }: SendOptions<'delivered'>) =>
      new Promise<never>((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason as Error))),
  );
  const session = { id: 's', ref: { tenant: 'default', sessionId: 's' }, lastNumber: async () => 1, wire: { send } };
  const { app, authorization } = await appOnNothing({
    metrics,
    log: { ...SILENT, error, debug },
    clientOf: () => ({ session: () => session as unknown as BusSession }) as unknown as GatewayClient,
  });
  const url = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
  const head = `host: gateway.test\r\nauthorization: ${authorization}\r\ncontent-type: application/json`;
  const socket = connect({ host: url.hostname, port: Number(url.port) });
  return { app, head, socket, error, debug, metrics, send };
}

const STEER = 'POST /v1/sessions/s/steer?wait=delivered HTTP/1.1';

async function expectQuiet({ error, debug, metrics }: Awaited<ReturnType<typeof appThatWaits>>) {
  await vi.waitFor(() => expect(debug).toHaveBeenCalledWith(expect.anything(), expect.stringContaining('closed')), {
    timeout: 20_000,
  });
  expect(error).not.toHaveBeenCalled();
  const told = await metrics.registry.metrics();
  expect(told).not.toContain('code="internal"');
  expect(told).toContain('coxswain_gateway_refused_total{code="request_closed"} 1');
  return told;
}

test('while a receipt is waited for', async () => {
  const waiting = await appThatWaits();
  const { app, head, socket, send } = waiting;
  socket.write(`${STEER}\r\n${head}\r\ncontent-length: 12\r\n\r\n{"body":"x"}`);
  await vi.waitFor(() => expect(send).toHaveBeenCalled(), { timeout: 20_000 });
  socket.destroy();
  const told = await expectQuiet(waiting);
  // The command is on the bus: only the waiting has ended.
  expect(told).toContain('coxswain_gateway_commands_total{verb="steer",outcome="stored"} 1');
  await app.close();
});

test('half-way through what it was going to say', async () => {
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

test('while others are read for: it keeps nobody out', async () => {
  const begun: (() => void)[] = [];
  const listSessions = () =>
    new Promise((resolve) => begun.push(() => resolve({ sessions: [], next_cursor: null }))) as ReturnType<
      GatewayClient['wire']['listSessions']
    >;
  const reads = new LimitedReads(1, 1);
  const asked = vi.spyOn(reads, 'run');
  const debug = vi.fn();
  const { app, authorization } = await appOnNothing({
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
  begun[0]?.();
  expect(await first.answered).toMatch(/^HTTP\/1.1 200 /);
  await vi.waitFor(() => expect(begun).toHaveLength(2), { timeout: 20_000 });
  begun[1]?.();
  expect(await third.answered).toMatch(/^HTTP\/1.1 200 /);
  for (const { socket } of [first, third]) socket.destroy();
  await app.close();
});
