/** What the nemesis can do to servers, and to what leads to them. For scenarios that open their servers as nodes. */
import { once } from 'node:events';
import { createConnection } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { JOURNAL_STREAMS, STREAMS } from '@coxswain/protocol';
import type { ClusterNode } from '../cluster/cluster-node.ts';
import { askUntil } from '../e2e/kit/ask-until.ts';
import type { Operation } from './nemesis.ts';
import { nodesOf } from './server-nodes.ts';
import type { World } from './world.ts';

/** The stream whose leader is meant where a strike says `journals`, and where it says `commands`. */
const LED: Readonly<Record<string, string>> = { journals: JOURNAL_STREAMS[0] as string, commands: STREAMS.commands };

/** `on` is a node's name, or `leader of journals` or `leader of commands`. */
async function struckNode({ servers }: World, on: string): Promise<ClusterNode> {
  const { cluster } = nodesOf(servers);
  const led = /^leader of (.+)$/.exec(on)?.[1];
  return cluster.node(led === undefined ? on : await cluster.awaitLeader(LED[led] as string));
}

function note({ history }: World, { name, pid }: ClusterNode, did: 'killed' | 'told_to_stop' | 'paused'): void {
  history.push({ what: 'process', role: 'server', name, pid: pid ?? 0, did });
}

/** See the top of the file. Each resolves when the servers are whole again. */
export const SERVER_OPERATIONS: Readonly<Record<string, Operation>> = {
  /** kill -9, and started again on its store after `forMs`. */
  async kill_server(world, { on, forMs = 3_000 }) {
    const node = await struckNode(world, on);
    note(world, node, 'killed');
    await node.kill();
    await sleep(forMs);
    await node.start();
    await node.ready();
    return node.name;
  },
  /** Told to end, and started again after `forMs`. */
  async restart_server(world, { on, forMs = 1_000 }) {
    const node = await struckNode(world, on);
    note(world, node, 'told_to_stop');
    await node.terminate();
    await sleep(forMs);
    await node.start();
    await node.ready();
    return node.name;
  },
  /** Stopped where it stands, and continued after `forMs`. */
  async pause_server(world, { on, forMs = 12_000 }) {
    const node = await struckNode(world, on);
    note(world, node, 'paused');
    await node.pause();
    await sleep(forMs);
    node.resume();
    await node.ready();
    return node.name;
  },
  /** The leader of a stream is asked to lead it no more. */
  async step_down({ servers }, { on }) {
    const { cluster } = nodesOf(servers);
    for (const stream of on === 'journals' ? JOURNAL_STREAMS : [LED[on] as string]) await cluster.stepDown(stream);
  },
  /** The cable of a host, or of all `clients`, is cut: nothing closes and nothing comes. */
  async cut_cable({ servers }, { on, forMs = 30_000 }) {
    const cable = nodesOf(servers).cables.get(on);
    if (!cable) throw new Error(`${on} has no cable of its own`);
    cable.cut();
    await sleep(forMs);
    cable.mend();
  },
  /**
   * Somebody asks for every event there is and never reads one, while as much is published as the server keeps for a
   * connection. It has to cut that one off, and nobody else may notice.
   */
  async slow_consumer({ servers }, { forMs = 30_000 }) {
    const node = nodesOf(servers).cluster.nodes[0] as ClusterNode;
    const before = await slowConsumersOf(node);
    const socket = createConnection(node.address.clientPort, node.address.host);
    // Nobody reads it, so nobody hears that it was cut off either: the server is asked.
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    socket.write(
      `CONNECT ${JSON.stringify({ verbose: false, auth_token: servers.connection.token })}\r\nSUB cox.> 1\r\n`,
    );
    const noise = await nodesOf(servers).cluster.connect({ name: 'noise' });
    const payload = new Uint8Array(NOISE_BYTES);
    for (let sent = 0; sent < NOISE_TOTAL_BYTES; sent += NOISE_BYTES) {
      noise.publish('cox.default.deltas.nobody', payload);
      await noise.flush();
    }
    await noise.close();
    const isCutOff = async () => (await slowConsumersOf(node)) > before;
    await askUntil('the server to cut off whoever reads nothing', isCutOff, forMs).finally(() => socket.destroy());
    return 'cut off by the server';
  },
};

/** Connections that a server has cut off since its start, as they did not read. */
async function slowConsumersOf({ address: { host, monitorPort } }: ClusterNode): Promise<number> {
  const answer = await fetch(`http://${host}:${monitorPort}/varz`);
  return ((await answer.json()) as { slow_consumers: number }).slow_consumers;
}

const NOISE_BYTES = 1024 * 1024;
/** More than a server keeps for one connection, 64 MiB, and than the kernel holds for a socket. */
const NOISE_TOTAL_BYTES = 96 * 1024 * 1024;
