/** What sessions stand on in a run: one nats-server, or what else a scenario opens (a cluster, for one). */
import { join } from 'node:path';
import { findServer, startServer } from '@coxswain/adapter-embedded-server';
import { openNodes } from './server-nodes.ts';

/** Servers that are up. */
export interface ChaosServers {
  /** Addresses with their token, separated by commas, as `NATS_URL` takes them: what hosts and workers are given. */
  readonly natsUrl: string;
  /** The same for a connection of the harness. */
  readonly connection: { readonly servers: string[]; readonly token: string };
  readonly replicas: 1 | 3;
  /** What a host of this name is given in place of `natsUrl`. */
  natsUrlOf?(host: string): string | undefined;
  /** Where a host of this name is run; see `process-fleet.ts`. */
  throughOf?(host: string): readonly string[];
  /** The processes as they are now, by name: their memory is sampled. */
  pids(): Readonly<Record<string, number>>;
  stop(): Promise<void>;
}

/** Opens the servers of a run, their stores inside `folder`. */
export type OpenServers = (folder: string) => Promise<ChaosServers>;

/** One server as `cox up` starts it: every write is on the disk before it is acknowledged. */
export const openOneServer: OpenServers = async (folder) => {
  const { NATS_URL: _, ...env } = process.env;
  const found = await findServer({ env });
  if (found.kind !== 'binary') throw new Error('a server binary was asked for');
  const server = await startServer({ binary: found.path, stateDir: join(folder, 'server') });
  const { url, token, pid } = server;
  return {
    natsUrl: url.replace('nats://', `nats://${token}@`),
    connection: { servers: [url], token },
    replicas: 1,
    pids: () => ({ server: pid }),
    stop: () => server.stop(),
  };
};

/** The servers of scenarios that name none. */
export function openServersFor(replicas: 1 | 3): OpenServers {
  return replicas === 1 ? openOneServer : openNodes();
}
