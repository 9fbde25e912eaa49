/** The network between three servers is parted: first with a stream's leader alone on one side, then with a host beside it. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Operation } from '../nemesis.ts';
import type { Scenario } from '../scenario.ts';
import { nodesOf, openNodes } from '../server-nodes.ts';
import { SERVER_OPERATIONS } from '../server-operations.ts';
import { noSmallNetwork, openSmallNetwork, type SmallNetwork } from '../small-network.ts';
import { serverBars } from './server-bars.ts';

const PARTED_MS = 20_000;

/** One run at a time in a process. */
let network: SmallNetwork | null = null;

/** The leader of the journals goes to the other side, and with it whoever is named: `a` for a host, `nobody`. */
const partLeader: Operation = async ({ servers }, { on, forMs = PARTED_MS }) => {
  if (!network) throw new Error('there is no network to part');
  const { cluster } = nodesOf(servers);
  const leader = await cluster.awaitLeader('COX_JOURNAL_0');
  network.part([leader, ...(on === 'nobody' ? [] : [on])]);
  await sleep(forMs);
  network.join();
  await cluster.ready();
  return `${leader} and ${on}`;
};

/** See the top of the file. */
export const clusterParted: Scenario = {
  name: 'cluster-parted',
  about: 'a stream leader is cut off from the other two servers for 20 s; then again, with a host beside it',
  defaults: { hosts: 2, workers: 1, sessions: 40, minutes: 2, replicas: 3, seed: 1 },
  impossible: noSmallNetwork,
  openServers: openNodes(async () => {
    const laid = openSmallNetwork(['n1', 'n2', 'n3', 'a']);
    network = laid;
    return {
      places: ['n1', 'n2', 'n3'].map((name) => ({ host: laid.addressOf(name), through: laid.throughOf(name) })),
      throughOf: (host) => (host === 'a' ? laid.throughOf(host) : []),
      after: async () => laid.remove(),
    };
  }),
  operations: { ...SERVER_OPERATIONS, part_leader: partLeader },
  faults: ({ minutes }) => [
    { atMs: minutes * 60_000 * 0.15, fault: 'part_leader', on: 'nobody', forMs: PARTED_MS },
    { atMs: minutes * 60_000 * 0.55, fault: 'part_leader', on: 'a', forMs: PARTED_MS },
  ],
  bars: (measures) => serverBars(measures),
};
