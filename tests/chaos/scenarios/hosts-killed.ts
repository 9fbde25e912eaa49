/** A host is killed -9 every ten seconds and started again some seconds later, while sessions are steered and approved. */

import type { Scenario } from '../scenario.ts';
import { strikesEvery } from '../strikes-every.ts';
import { hostNames } from '../world.ts';
import { usualBars } from './usual-bars.ts';

const EVERY_MS = 10_000;

/** See the top of the file. */
export const hostsKilled: Scenario = {
  name: 'hosts-killed',
  about: 'kill -9 of a host every 10 s under load; it is started again 3 to 6 s later',
  defaults: { hosts: 3, workers: 2, sessions: 200, minutes: 5, replicas: 1, seed: 1 },
  faults({ hosts, minutes }, random) {
    const names = hostNames(hosts);
    // One after another, from a chance beginning: so that each is struck and none twice while it is away.
    const first = random.int(hosts);
    return strikesEvery({ everyMs: EVERY_MS, quietMs: EVERY_MS / 2 }, minutes, (i) => ({
      fault: 'kill_host',
      on: names[(first + i) % hosts] as string,
      forMs: random.between(3_000, 6_000),
    }));
  },
  bars: (measures) => [
    ...usualBars(measures, 5_000),
    {
      what: "worst take-over of a killed host's session",
      value: measures.takeOvers?.worst ?? null,
      unit: 'ms',
      atMost: 4_000,
    },
    { what: 'median take-over', value: measures.takeOvers?.p50 ?? null, unit: 'ms' },
  ],
};
