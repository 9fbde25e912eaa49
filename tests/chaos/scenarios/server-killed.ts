/** The only server is killed -9 under load, and comes back on its store some seconds later. */
import type { Scenario } from '../scenario.ts';
import { openNodes } from '../server-nodes.ts';
import { SERVER_OPERATIONS } from '../server-operations.ts';
import { strikesEvery } from '../strikes-every.ts';
import { serverBars } from './server-bars.ts';

const EVERY_MS = 20_000;

/** See the top of the file. */
export const serverKilled: Scenario = {
  name: 'server-killed',
  about: 'kill -9 of the only server every 20 s under load; it is started again 2 to 5 s later; one who never reads',
  defaults: { hosts: 2, workers: 2, sessions: 60, minutes: 1, replicas: 1, seed: 1 },
  openServers: openNodes({ size: 1 }),
  operations: SERVER_OPERATIONS,
  faults({ minutes }, random) {
    return strikesEvery({ everyMs: EVERY_MS, firstMs: EVERY_MS / 2, quietMs: 5_000 }, minutes, () => ({
      fault: 'kill_server',
      on: 'n1',
      forMs: random.between(2_000, 5_000),
    }));
  },
  bars: (measures) => serverBars(measures),
};
