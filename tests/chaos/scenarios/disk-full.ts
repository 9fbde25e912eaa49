/** The disk of the only server is full for a while. Publishers are told; when there is space again, sessions go on. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { sessionRef, subjects } from '@coxswain/protocol';
import type { Cluster } from '../../cluster/cluster.ts';
import type { Scenario } from '../scenario.ts';
import { nodesOf, openNodes } from '../server-nodes.ts';
import { SERVER_OPERATIONS } from '../server-operations.ts';
import { mountSmallDisk, noSmallDisk, type SmallDisk } from '../small-disk.ts';
import { serverBars } from './server-bars.ts';

/** The server reserves the limits of the command stream and of the registry. It lends three quarters of the disk. */
const DISK_MIB = 1_024;

/** Space is there again, and nobody restarts anything, for so long. */
const BY_ITSELF_MS = 3_000;

/** One run at a time in a process. */
let disk: SmallDisk | null = null;

async function takesWrites(cluster: Cluster): Promise<boolean> {
  const nc = await cluster.connect({ name: 'disk-probe' });
  try {
    // The snapshot of nobody: it is in nobody's way.
    const answer = await nc.request(subjects.snapshot(sessionRef('disk-probe')), '', { timeout: 2_000 });
    return answer.json<{ seq?: number }>().seq !== undefined;
  } catch {
    return false;
  } finally {
    await nc.close();
  }
}

/** See the top of the file. */
export const diskFull: Scenario = {
  name: 'disk-full',
  about: "the server's disk is full for 15 s, twice",
  defaults: { hosts: 2, workers: 2, sessions: 60, minutes: 1.2, replicas: 1, seed: 1 },
  impossible: noSmallDisk,
  openServers: openNodes(async (folder) => {
    const mounted = mountSmallDisk(join(folder, 'disk'), DISK_MIB);
    disk = mounted;
    return {
      size: 1,
      storeDirOf: (name) => join(mounted.folder, name),
      after: async () => mounted.unmount(),
    };
  }),
  operations: {
    ...SERVER_OPERATIONS,
    async fill_disk({ servers }, { on, forMs = 15_000 }) {
      if (!disk) throw new Error('there is no disk to fill');
      const { cluster } = nodesOf(servers);
      disk.fill();
      await sleep(forMs);
      disk.free();
      await sleep(BY_ITSELF_MS);
      const cameBack = await takesWrites(cluster);
      // A server that could not write has turned its streams off, and only a restart turns them on again.
      await cluster.node(on).terminate();
      await cluster.node(on).start();
      await cluster.node(on).ready();
      return cameBack ? 'took writes again by itself' : 'took no writes until it was restarted';
    },
  },
  faults: ({ minutes }) =>
    [0.2, 0.6].map((share) => ({ atMs: minutes * 60_000 * share, fault: 'fill_disk', on: 'n1', forMs: 15_000 })),
  bars: (measures) => serverBars(measures),
};
