/** All hosts are replaced, one after another, under load: as an upgrade does it. */

import type { Scenario } from '../scenario.ts';
import { strikesEvery } from '../strikes-every.ts';
import { hostNames } from '../world.ts';
import { usualBars } from './usual-bars.ts';

const EVERY_MS = 18_000;

/** See the top of the file. */
export const rollingRestart: Scenario = {
  name: 'rolling-restart',
  about: 'every host is replaced by a new one, one after another, under load',
  defaults: { hosts: 3, workers: 2, sessions: 120, minutes: 2, replicas: 1, seed: 1 },
  faults({ hosts, minutes }) {
    const names = hostNames(hosts);
    return strikesEvery({ everyMs: EVERY_MS, firstMs: EVERY_MS / 2 }, minutes, (i) => ({
      fault: 'replace_host',
      on: names[i % hosts] as string,
    }));
  },
  bars: (measures) => usualBars(measures, 1_000),
};
