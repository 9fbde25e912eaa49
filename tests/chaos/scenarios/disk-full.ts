/** The disk of the only server is full for a while. Publishers are told; when there is space again, sessions go on. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Scenario } from '../scenario.ts';
import { openNodes } from '../server-nodes.ts';
import { SERVER_OPERATIONS } from '../server-operations.ts';
import { mountSmallDisk, noSmallDisk, type SmallDisk } from '../small-disk.ts';
import { serverBars } from './server-bars.ts';

const DISK_MIB = 512;

/** One run at a time in a process. */
let disk: SmallDisk | null = null;

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
    async fill_disk(_world, { forMs = 15_000 }) {
      if (!disk) throw new Error('there is no disk to fill');
      disk.fill();
      await sleep(forMs);
      disk.free();
    },
  },
  faults: ({ minutes }) =>
    [0.2, 0.6].map((share) => ({ atMs: minutes * 60_000 * share, fault: 'fill_disk', on: 'n1', forMs: 15_000 })),
  bars: (measures) => serverBars(measures),
};
