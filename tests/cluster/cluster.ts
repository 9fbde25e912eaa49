/**
 * A real cluster of nats-servers on loopback, or on addresses that a test gives it, with a store for each: to be started,
 * broken in every way that a process can be, and asked what it is doing.
 */
import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findServer } from '@coxswain/adapter-embedded-server';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { askUntil } from '../e2e/kit/ask-until.ts';
import { ClusterNode } from './cluster-node.ts';
import { freePorts } from './free-ports.ts';
import { type ClusterSettings, type NodeAddress, nodeConfig } from './node-config.ts';

/** Where a node lives, for one that does not live on loopback. */
export interface NodePlace {
  readonly host: string;
  readonly through: readonly string[];
}

/** How a cluster is started. Every member has a default. */
export interface ClusterOptions {
  /** Default 3. */
  readonly size?: number;
  /** Where stores, configurations and logs lie. Default: a temporary folder, which goes with the cluster. */
  readonly folder?: string;
  /** `cox admin auth`'s accounts.conf, in place of a token. */
  readonly include?: string;
  /** Default `2m`, the server's own. */
  readonly syncInterval?: string;
  /** Encrypts the stores. Default: none. */
  readonly cipher?: 'aes' | 'chachapoly';
  /** One for each node, where they do not share loopback. */
  readonly places?: readonly NodePlace[];
  /** The folder of a node's store, where it is not to lie in the cluster's own. */
  readonly storeDirOf?: (name: string) => string;
}

/** A cluster that is up. */
export interface Cluster {
  readonly nodes: readonly ClusterNode[];
  /** The addresses of all nodes, without credentials. */
  readonly servers: string[];
  /** Null where accounts say who may. */
  readonly token: string | null;
  /** All addresses with the token in them, as `NATS_URL` takes them. */
  readonly natsUrl: string;
  node(name: string): ClusterNode;
  /** A bare connection that knows all addresses and reconnects for as long as it takes. */
  connect(options?: { readonly name?: string }): Promise<NatsConnection>;
  /** The node that leads a stream, as the cluster says; null where nobody does. */
  leaderOf(stream: string): Promise<string | null>;
  /** Waits for a stream to have a leader, other than `not` where that is named. */
  awaitLeader(stream: string, not?: string): Promise<string>;
  /** Asks the leader of a stream to lead it no more. Does not wait for the next. */
  stepDown(stream: string): Promise<void>;
  /** Waits until every node that is up is healthy. */
  ready(): Promise<void>;
  /** Starts what is down, lets go on what stands still, and waits until all are healthy. */
  restore(): Promise<void>;
  stop(): Promise<void>;
}

/** Nobody else may have taken a port in between so often. */
const STARTS_MAX = 5;
const LEADER_PATIENCE_MS = 60_000;
const ASK_TIMEOUT_MS = 2_000;

/** Starts one and waits until all nodes are healthy. */
export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const { NATS_URL: _, ...env } = process.env;
  const found = await findServer({ env });
  if (found.kind !== 'binary') throw new Error('a server binary was asked for');
  const folder = options.folder ?? (await mkdtemp(join(tmpdir(), 'cox-cluster-')));
  const settings: ClusterSettings = {
    token: options.include === undefined ? randomBytes(16).toString('hex') : null,
    include: options.include ?? null,
    syncInterval: options.syncInterval ?? '2m',
    cipher: options.cipher ?? null,
  };
  for (let start = 1; ; start++) {
    const nodes = await makeNodes(found.path, folder, settings, options);
    const cluster = clusterOf(nodes, settings, async () => {
      await Promise.all(nodes.map((node) => node.kill()));
      if (options.folder === undefined) await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    });
    try {
      await Promise.all(nodes.map((node) => node.start()));
      await cluster.ready();
      return cluster;
    } catch (error) {
      const wasTaken = nodes.some(({ told }) => /address already in use/.test(told));
      await Promise.all(nodes.map((node) => node.kill()));
      if (!wasTaken || start === STARTS_MAX) {
        await cluster.stop();
        throw error;
      }
    }
  }
}

async function makeNodes(
  binary: string,
  folder: string,
  settings: ClusterSettings,
  { size = 3, places, storeDirOf }: ClusterOptions,
): Promise<ClusterNode[]> {
  const ports = await freePorts(3 * size);
  const addresses = Array.from({ length: size }, (_, i): NodeAddress => {
    const [clientPort, routePort, monitorPort] = ports.slice(3 * i, 3 * i + 3) as [number, number, number];
    return { name: `n${i + 1}`, host: places?.[i]?.host ?? '127.0.0.1', clientPort, routePort, monitorPort };
  });
  return Promise.all(
    addresses.map(async (address, i) => {
      const own = join(folder, address.name);
      const storeDir = storeDirOf?.(address.name) ?? join(own, 'store');
      const [configFile, logFile] = [join(own, 'server.conf'), join(own, 'server.log')];
      // Of a start that failed over its ports nothing may stay.
      await rm(own, { recursive: true, force: true });
      await mkdir(storeDir, { recursive: true });
      await mkdir(own, { recursive: true });
      await writeFile(configFile, nodeConfig(address, addresses, settings, storeDir, logFile));
      return new ClusterNode({ address, binary, configFile, logFile, storeDir, through: places?.[i]?.through ?? [] });
    }),
  );
}

function clusterOf(nodes: readonly ClusterNode[], { token }: ClusterSettings, remove: () => Promise<void>): Cluster {
  const servers = nodes.map(({ url }) => url);
  const open: NatsConnection[] = [];
  let asking: Promise<NatsConnection> | null = null;

  const connectTo = async (to: readonly string[], name: string): Promise<NatsConnection> => {
    const nc = await connect({
      servers: [...to],
      ...(token === null ? {} : { token }),
      name,
      maxReconnectAttempts: -1,
      reconnectTimeWait: 100,
      reconnectJitter: 0,
      // A node that stands still says nothing: its connections are open, and only a question shows that nobody is there.
      pingInterval: 1_000,
      maxPingOut: 1,
      timeout: ASK_TIMEOUT_MS,
    });
    open.push(nc);
    return nc;
  };
  const ask = async (subject: string): Promise<{ readonly cluster?: { readonly leader?: string } } | null> => {
    asking ??= connectTo(servers, 'cluster-asks').catch((error: unknown) => {
      asking = null;
      throw error;
    });
    try {
      return (await (await asking).request(subject, '', { timeout: ASK_TIMEOUT_MS })).json();
    } catch {
      // Nobody leads, or the node that was asked is down: the next question goes to another.
      return null;
    }
  };
  const leaderOf = async (stream: string) => (await ask(`$JS.API.STREAM.INFO.${stream}`))?.cluster?.leader || null;

  const ready = async () => {
    await Promise.all(nodes.filter(({ state }) => state === 'up').map((node) => node.ready()));
  };
  return {
    nodes,
    servers,
    token,
    natsUrl: servers.map((url) => (token === null ? url : url.replace('nats://', `nats://${token}@`))).join(','),
    node(name) {
      const node = nodes.find((one) => one.name === name);
      if (!node) throw new Error(`there is no node ${name}`);
      return node;
    },
    connect: ({ name = 'cluster-test' } = {}) => connectTo(servers, name),
    leaderOf,
    awaitLeader: (stream, not) =>
      askUntil(
        `a leader of ${stream}`,
        async () => {
          const leader = await leaderOf(stream);
          return leader !== not && leader;
        },
        LEADER_PATIENCE_MS,
      ),
    stepDown: async (stream) => void (await ask(`$JS.API.STREAM.LEADER.STEPDOWN.${stream}`)),
    ready,
    async restore() {
      for (const node of nodes) {
        if (node.state === 'paused') node.resume();
        if (node.state === 'down') await node.start();
      }
      await ready();
    },
    async stop() {
      await Promise.all(open.map((nc) => nc.close()));
      await remove();
    },
  };
}
