/** Errors of a listen address that cannot be used. */
import { createServer } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { listenOn } from '../src/http/mod.ts';
import { appWithoutBus } from './app-without-bus.ts';

const taken = createServer();
let port = 0;
beforeAll(async () => {
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
  port = (taken.address() as { port: number }).port;
});
afterAll(() => new Promise((resolve) => taken.close(resolve)));

test('a port in use is reported with the address', async () => {
  const { app } = await appWithoutBus();
  await expect(listenOn(app, '127.0.0.1', port)).rejects.toMatchObject({
    code: 'port_in_use',
    message: `the gateway cannot listen at 127.0.0.1:${port}: port ${port} is in use (EADDRINUSE)`,
  });
  await app.close();
});

test('an address of another machine is reported', async () => {
  const { app } = await appWithoutBus();
  // An address reserved for documentation: no machine has it.
  await expect(listenOn(app, '192.0.2.1', 0)).rejects.toMatchObject({
    code: 'gateway_option_invalid',
    message: 'the gateway cannot listen at 192.0.2.1:0: this machine has no such address (EADDRNOTAVAIL)',
  });
  await app.close();
});
