/** What is told of an address at which a gateway cannot listen. */
import { createServer } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { listenOn } from '../src/listen-on.ts';
import { appOnNothing } from './app-on-nothing.ts';

const taken = createServer();
let port = 0;
beforeAll(async () => {
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
  port = (taken.address() as { port: number }).port;
});
afterAll(() => new Promise((resolve) => taken.close(resolve)));

test('a port that is taken is told with what was to listen there, and where', async () => {
  const { app } = await appOnNothing();
  await expect(listenOn(app, '127.0.0.1', port)).rejects.toMatchObject({
    code: 'port_in_use',
    message: `the gateway cannot listen at 127.0.0.1:${port}: port ${port} is in use (EADDRINUSE)`,
  });
  await app.close();
});

test('an address of another machine is told as one', async () => {
  const { app } = await appOnNothing();
  // Of a net that is kept for documents: no machine has it.
  await expect(listenOn(app, '192.0.2.1', 0)).rejects.toMatchObject({
    code: 'gateway_option_invalid',
    message: 'the gateway cannot listen at 192.0.2.1:0: this machine has no such address (EADDRNOTAVAIL)',
  });
  await app.close();
});
