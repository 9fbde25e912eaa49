/** Ports of loopback that nobody listens on. */
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';

/**
 * So many different ones. They are held until all are known and then let go: another program may be quicker, so whoever
 * starts a server on one is prepared to ask for others.
 */
export async function freePorts(count: number): Promise<number[]> {
  const held = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'));
  await Promise.all(held.map((server) => once(server, 'listening')));
  const ports = held.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(
    held.map((server) => {
      server.close();
      return once(server, 'close');
    }),
  );
  return ports;
}
