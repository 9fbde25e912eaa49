/** Responses that clients do not read: their memory and their time are bounded. */
import { EventEmitter, once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { connect } from 'node:net';
import type { BusSession } from '@coxswain/client';
import { expect, onTestFinished, test } from 'vitest';
import { type GatewayClient, ReadShares, UnreadResponses } from '../src/context/mod.ts';
import { appWithoutBus } from './app-without-bus.ts';

/** Larger than the buffers of a connection. */
const STATE = { text: 'x'.repeat(32 * 1024 * 1024) };

async function appWithLargeState(unread: UnreadResponses) {
  const session = { id: 's', wire: { stateAfter: async () => STATE } } as unknown as BusSession;
  const clientOf = () => ({ session: () => session }) as unknown as GatewayClient;
  const { app, authorization } = await appWithoutBus({ unread, clientOf });
  onTestFinished(() => app.close());
  const url = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
  /** A client that reads nothing. */
  const connected = async () => {
    const answered = once(app.server, 'request');
    const socket = connect({ host: url.hostname, port: Number(url.port) });
    socket.pause().on('error', () => undefined);
    socket.write(`GET /v1/sessions/s HTTP/1.1\r\nhost: gateway.test\r\nauthorization: ${authorization}\r\n\r\n`);
    const [, response] = await answered;
    await expect.poll(() => response.headersSent, { timeout: 20_000 }).toBe(true);
    return { socket, response };
  };
  const get = () => app.inject({ url: '/v1/sessions/s', headers: { host: 'gateway.test', authorization } });
  return { connected, get };
}

test('beyond the memory for unread responses, a response becomes a problem', async () => {
  const { connected, get } = await appWithLargeState(new UnreadResponses(1_000_000, 600_000));
  const { socket } = await connected();
  const refused = await get();
  expect([refused.statusCode, refused.headers['retry-after']]).toEqual([503, '1']);
  expect(refused.json()).toMatchObject({ code: 'gateway_busy' });
  socket.destroy();
  await expect.poll(async () => (await get()).statusCode, { timeout: 20_000 }).toBe(200);
});

test('a principal that does not read its responses does not affect another one', () => {
  const unread = new UnreadResponses(4_000, 600_000);
  const add = (name: string) => {
    const response = Object.assign(new EventEmitter(), { destroyed: false });
    unread.add(response as unknown as ServerResponse, 1_000, {
      name,
      tenant: 'default',
      scopes: new Set(),
      expiresAt: null,
    });
    return response;
  };
  const response = add('alice');
  expect(() => add('alice')).toThrow(expect.objectContaining({ code: 'gateway_busy' }));
  add('bob');
  response.emit('close');
  add('alice');
});

test('a response that is not read in time ends with its connection', async () => {
  const { connected } = await appWithLargeState(new UnreadResponses(1_000_000, 200));
  const { socket, response } = await connected();
  await expect.poll(() => response.destroyed, { timeout: 20_000 }).toBe(true);
  socket.destroy();
});

const run = { threadId: 's', runId: 'r', messages: [] };

test.each([
  ['/v1/sessions/s'],
  ['/v1/sessions/s/pending'],
  ['/v1/sessions/s/statechart'],
  ['/v1/sessions/s/events?from=newest'],
  ['/v1/agui', { ...run, messages: [{ id: 'm', role: 'user', content: 'hi' }] }],
  ['/v1/agui', { ...run, resume: [{ interruptId: 'suspended', status: 'cancelled' }] }],
])('%s waits for a slot, and is rejected beyond the queue', async (url, payload?: object) => {
  const session = { id: 's', ref: { tenant: 'default', sessionId: 's' }, lastNumber: async () => 1 };
  const clientOf = () => ({ session: () => session as unknown as BusSession }) as unknown as GatewayClient;
  const { app, authorization } = await appWithoutBus({ clientOf, stateReads: new ReadShares({ all: 0, waiting: 0 }) });
  const { statusCode, headers, body } = await app.inject({
    url,
    ...(payload && { method: 'POST', payload }),
    headers: { host: 'gateway.test', authorization },
  });
  expect([statusCode, headers['retry-after'], JSON.parse(body).code]).toEqual([503, '1', 'gateway_busy']);
});
