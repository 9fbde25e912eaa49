/** Servers that the nemesis can strike one by one: a cluster, or one that is no cluster; with what stands around them. */
import { join } from 'node:path';
import { type Cluster, type ClusterOptions, startCluster } from '../cluster/cluster.ts';
import { prepareStreams } from './prepare-streams.ts';
import type { ChaosServers, OpenServers } from './servers.ts';
import { openProxy, type TcpProxy } from './tcp-proxy.ts';

/** Servers as nodes of a cluster. */
export interface NodeServers extends ChaosServers {
  readonly cluster: Cluster;
  /** The cables that can be cut, by whose they are. */
  readonly cables: ReadonlyMap<string, TcpProxy>;
}

/** How they are opened. */
export interface NodesOptions extends ClusterOptions {
  /** Hosts, or `clients`, that reach the one server over a cable of their own. */
  readonly cables?: readonly string[];
  readonly throughOf?: (host: string) => readonly string[];
  /** Done after the servers have ended. */
  readonly after?: () => Promise<void>;
}

/** Three nodes, each write on one disk's way to the platter within two minutes, and streams on all three; `size: 1` is for one that syncs always. */
export function openNodes(options: NodesOptions | ((folder: string) => Promise<NodesOptions>) = {}): OpenServers {
  return async (folder) => {
    const { cables = [], throughOf, after, ...rest } = typeof options === 'function' ? await options(folder) : options;
    const replicas = rest.size === 1 ? 1 : 3;
    const cluster = await startCluster({
      folder: join(folder, 'servers'),
      ...(replicas === 1 ? { syncInterval: 'always' } : {}),
      ...rest,
    });
    const token = cluster.token as string;
    const { host, clientPort } = (cluster.nodes[0] as (typeof cluster.nodes)[0]).address;
    const made = new Map<string, TcpProxy>();
    for (const name of cables) made.set(name, await openProxy({ host, port: clientPort }));
    const addressOf = (name: string) => {
      const cable = made.get(name);
      return cable ? [`nats://127.0.0.1:${cable.port}`] : cluster.servers;
    };
    await prepareStreams(cluster.servers, token, replicas);
    const servers: NodeServers = {
      cluster,
      cables: made,
      natsUrl: cluster.natsUrl,
      connection: { servers: addressOf('clients'), token },
      replicas,
      natsUrlOf: (name) =>
        addressOf(name)
          .map((url) => url.replace('nats://', `nats://${token}@`))
          .join(','),
      ...(throughOf ? { throughOf } : {}),
      pids: () => Object.fromEntries(cluster.nodes.flatMap(({ name, pid }) => (pid === null ? [] : [[name, pid]]))),
      async stop() {
        await Promise.all([...made.values()].map((cable) => cable.close()));
        await cluster.stop();
        await after?.();
      },
    };
    return servers;
  };
}

/** A world's servers, where its scenario has opened them with {@link openNodes}. */
export function nodesOf(servers: ChaosServers): NodeServers {
  if (!('cluster' in servers)) throw new Error('the servers of this scenario are no nodes');
  return servers as NodeServers;
}
