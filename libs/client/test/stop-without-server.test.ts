/** Stopping a service whose server does not answer: it fails, and leaves nothing open. */
import { createServer, type Socket } from 'node:net';
import { DEFAULT_TENANT, tenantSubjects } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { expect, onTestFinished, test } from 'vitest';
import { servedOnOwnConnection } from '../src/connected-nats.ts';
import { defineTool } from '../src/define-tool.ts';
import { servePersonaOn } from '../src/serve-persona.ts';
import { serveToolOn } from '../src/serve-tool.ts';
import { NO_MESSAGE, storeConnection } from './store-connection.ts';

const tool = defineTool({ name: 't', description: '', inputSchema: { type: 'object' }, execute: () => 'done' });

/** A server that accepts connections. @returns its port. */
async function natsServer(): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.write(
      `INFO ${JSON.stringify({ server_id: 's', version: '2.15.0', max_payload: 1_048_576, headers: true })}\r\n`,
    );
    socket.on('data', (data) => data.includes('PING') && socket.write('PONG\r\n'));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as { port: number }).port;
}

test('the connection of a service closes although its stop fails', async () => {
  const port = await natsServer();
  let opened: NatsConnection | undefined;
  const served = await servedOnOwnConnection({ servers: `127.0.0.1:${port}` }, async ({ nc }) => {
    opened = nc;
    return { stop: () => Promise.reject(new Error('the connection is lost')) };
  });
  await expect(served.stop()).rejects.toThrow('the connection is lost');
  expect(opened?.isClosed()).toBe(true);
});

test.each([Number.POSITIVE_INFINITY, 2 ** 31, -1, '1s'])(
  'a time limit of a stop that no timer has is rejected, instead of aborting all calls at once: %s',
  async (drainMs) => {
    const options = { drainMs: drainMs as number };
    const refused = { code: 'invalid_option', option: 'drainMs' };
    const { nc } = storeConnection(() => ({ seq: 1 }));
    await expect(serveToolOn({ nc }, DEFAULT_TENANT, tool as never, options)).rejects.toMatchObject(refused);
    const models = { check: async () => null, resolve: () => expect.unreachable() };
    const persona = servePersonaOn({ nc }, DEFAULT_TENANT, { name: 'p' }, { ...options, models });
    await expect(persona).rejects.toMatchObject(refused);
  },
);

test('a served tool unsubscribes although its stop fails', async () => {
  const { nc, subscribed } = storeConnection(({ subject }) =>
    subject.startsWith('$JS.API.STREAM.MSG.GET.') ? NO_MESSAGE : { seq: 1 },
  );
  const served = await serveToolOn({ nc }, DEFAULT_TENANT, tool as never);
  const heartbeats = tenantSubjects.heartbeats('tools', DEFAULT_TENANT, 't').slice(0, -1);
  expect(subscribed()).toContain(heartbeats);
  nc.flush = () => new Promise(() => undefined);
  await expect(served.stop()).rejects.toMatchObject({ code: 'nats_unreachable' });
  expect(subscribed()).not.toContain(heartbeats);
});
