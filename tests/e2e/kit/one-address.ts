/** One address for several gateways: what stands before them in a deployment, without looking into what goes through. */
import { connect, createServer, type Socket } from 'node:net';

/** A balancer that listens. */
export interface OneAddress {
  readonly port: number;
  /** Where connections go, in turn; one that takes none is passed over. */
  readonly behind: number[];
  stop(): Promise<void>;
}

/** Starts one. Whoever finds nobody behind it is cut off. */
export async function oneAddress(): Promise<OneAddress> {
  const behind: number[] = [];
  const sockets = new Set<Socket>();
  let turn = 0;
  const join = (client: Socket, triesLeft: number): void => {
    const port = behind[turn++ % Math.max(1, behind.length)];
    if (port === undefined || triesLeft === 0) return void client.destroy();
    const server = connect({ port, host: '127.0.0.1' });
    sockets.add(server);
    let joined = false;
    server.once('connect', () => {
      joined = true;
      client.pipe(server).pipe(client);
    });
    server.on('error', () => undefined);
    server.once('close', () => {
      sockets.delete(server);
      if (joined) client.destroy();
      else if (!client.destroyed) join(client, triesLeft - 1);
    });
    client.once('close', () => server.destroy());
  };
  const listener = createServer((client) => {
    sockets.add(client);
    client.on('error', () => undefined);
    client.once('close', () => sockets.delete(client));
    join(client, behind.length);
  });
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  return {
    port: (listener.address() as { port: number }).port,
    behind,
    async stop() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => listener.close(resolve));
    },
  };
}
