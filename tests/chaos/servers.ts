/** What sessions stand on in a run: one nats-server, or what else a scenario opens (a cluster, for one). */
import { join } from 'node:path';
import { ensureStreams, findServer, startServer } from '@coxswain/adapter-nats';
import { startCluster } from '../cluster/cluster.ts';

/** Servers that are up. */
export interface ChaosServers {
  /** Addresses with their token, separated by commas, as `NATS_URL` takes them: what hosts and workers are given. */
  readonly natsUrl: string;
  /** The same for a connection of the harness. */
  readonly connection: { readonly servers: string[]; readonly token: string };
  readonly replicas: 1 | 3;
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

/** Three servers as a cluster, with every stream on all of them. */
export const openThreeServers: OpenServers = async (folder) => {
  const cluster = await startCluster({ folder: join(folder, 'cluster') });
  const nc = await cluster.connect({ name: 'chaos-streams' });
  // Hosts leave streams as they find them.
  await ensureStreams(nc, { replicas: 3 });
  await nc.close();
  const { natsUrl, servers, token } = cluster;
  return {
    natsUrl,
    connection: { servers, token: token ?? '' },
    replicas: 3,
    pids: () => Object.fromEntries(cluster.nodes.flatMap(({ name, pid }) => (pid === null ? [] : [[name, pid]]))),
    stop: () => cluster.stop(),
  };
};

/** The servers of scenarios that name none. */
export function openServersFor(replicas: 1 | 3): OpenServers {
  return replicas === 1 ? openOneServer : openThreeServers;
}
