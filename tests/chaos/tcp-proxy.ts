/** A cable between one party and a server: TCP on loopback, which can be cut as a real one is: nothing closes, nothing comes. */
import { once } from 'node:events';
import { type AddressInfo, createConnection, createServer, type Socket } from 'node:net';

/** See the top of the file. */
export interface TcpProxy {
  /** Where the party connects to, on 127.0.0.1. */
  readonly port: number;
  /** From now on nothing passes. Connections stay open, new ones are taken and lead nowhere. */
  cut(): void;
  /** What has waited on both sides goes on its way, as a network sends again what was not acknowledged. */
  mend(): void;
  /** Connections that stand now. */
  readonly connections: number;
  close(): Promise<void>;
}

/** Lays one to a server. */
export async function openProxy(to: { readonly host: string; readonly port: number }): Promise<TcpProxy> {
  const pairs = new Set<readonly [Socket, Socket]>();
  let isCut = false;
  const waiting = new Set<Socket>();

  const lead = (near: Socket): void => {
    const far = createConnection(to.port, to.host);
    const pair = [near, far] as const;
    pairs.add(pair);
    const end = () => {
      // While it is cut nobody hears of the other's end.
      if (isCut) return;
      pairs.delete(pair);
      near.destroy();
      far.destroy();
    };
    for (const [from, into] of [pair, [far, near]] as const) {
      from.on('data', (bytes) => {
        if (!into.write(bytes)) from.pause();
      });
      into.on('drain', () => {
        if (!isCut) from.resume();
      });
      from.on('close', end);
      from.on('error', end);
    }
  };

  const server = createServer((near) => {
    near.on('error', () => near.destroy());
    near.on('close', () => waiting.delete(near));
    if (isCut) waiting.add(near);
    else lead(near);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');

  return {
    port: (server.address() as AddressInfo).port,
    get connections() {
      return pairs.size;
    },
    cut() {
      isCut = true;
      for (const pair of pairs) for (const socket of pair) socket.pause();
    },
    mend() {
      isCut = false;
      for (const pair of pairs) {
        const [near, far] = pair;
        if (near.destroyed || far.destroyed) {
          pairs.delete(pair);
          near.destroy();
          far.destroy();
        } else {
          near.resume();
          far.resume();
        }
      }
      for (const near of waiting) if (!near.destroyed) lead(near);
      waiting.clear();
    },
    async close() {
      server.close();
      for (const pair of pairs) for (const socket of pair) socket.destroy();
      for (const near of waiting) near.destroy();
      await once(server, 'close');
    },
  };
}
