/** A host is killed -9 every ten seconds and started again some seconds later, while sessions are steered and approved. */

import type { Scenario } from '../scenario.ts';
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
    const strikes = Math.max(1, Math.floor((minutes * 60_000 - EVERY_MS / 2) / EVERY_MS));
    // One after another, from a chance beginning: so that each is struck and none twice while it is away.
    const first = random.int(hosts);
    return Array.from({ length: strikes }, (_, i) => ({
      atMs: Math.min((i + 1) * EVERY_MS, minutes * 60_000 * 0.5 + i * EVERY_MS),
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
