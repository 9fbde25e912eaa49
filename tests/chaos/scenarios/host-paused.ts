/** A host is stopped where it stands, for longer than its lease, and goes on: everything of it is somebody else's by then. */

import type { Scenario } from '../scenario.ts';
import { strikesEvery } from '../strikes-every.ts';
import { hostNames } from '../world.ts';
import { usualBars } from './usual-bars.ts';

const EVERY_MS = 15_000;

/** See the top of the file. */
export const hostPaused: Scenario = {
  name: 'host-paused',
  about: 'SIGSTOP of a host for 4 to 8 s every 15 s, then SIGCONT: past its lease',
  defaults: { hosts: 3, workers: 2, sessions: 120, minutes: 2, replicas: 1, seed: 1 },
  faults({ hosts, minutes }, random) {
    const names = hostNames(hosts);
    return strikesEvery({ everyMs: EVERY_MS }, minutes, () => ({
      fault: 'pause_host',
      on: names[random.int(hosts)] as string,
      forMs: random.between(4_000, 8_000),
    }));
  },
  bars: (measures) => usualBars(measures, 5_000),
};
