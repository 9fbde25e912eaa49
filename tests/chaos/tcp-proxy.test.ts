/** A cable that is cut closes nothing and carries nothing; mended, it carries what waited. */
import { once } from 'node:events';
import { type AddressInfo, createConnection, createServer, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { askUntil } from '../e2e/kit/ask-until.ts';
import { openProxy, type TcpProxy } from './tcp-proxy.ts';

const PATIENCE_MS = 10_000;

const heard: string[] = [];
const taken: Socket[] = [];
const server = createServer((socket) => {
  taken.push(socket);
  socket.on('error', () => undefined);
  socket.on('data', (bytes) => heard.push(bytes.toString()));
});
let proxy: TcpProxy;
let near: Socket;

beforeAll(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  proxy = await openProxy({ host: '127.0.0.1', port: (server.address() as AddressInfo).port });
  near = createConnection(proxy.port, '127.0.0.1');
  await once(near, 'connect');
});
afterAll(async () => {
  near.destroy();
  await proxy.close();
  server.close();
});

const arrived = (text: string) => askUntil(text, () => heard.join('').includes(text), PATIENCE_MS);

test('carries bytes, holds them while it is cut, and brings them when it is mended', async () => {
  near.write('before;');
  await arrived('before;');
  proxy.cut();
  near.write('meanwhile;');
  const late = createConnection(proxy.port, '127.0.0.1');
  // It is taken, as by a machine that is cut off a moment later, and leads nowhere.
  await once(late, 'connect');
  late.write('late;');
  // A second, uncut cable shows that there was time enough.
  const other = await openProxy({ host: '127.0.0.1', port: (server.address() as AddressInfo).port });
  const beside = createConnection(other.port, '127.0.0.1');
  await once(beside, 'connect');
  beside.write('beside;');
  await arrived('beside;');
  expect(heard.join('')).toBe('before;beside;');
  expect(near.destroyed).toBe(false);
  proxy.mend();
  await arrived('meanwhile;');
  await arrived('late;');
  late.destroy();
  beside.destroy();
  await other.close();
});
