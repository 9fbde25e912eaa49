/** All hosts are replaced, one after another, under load: as an upgrade does it. */

import type { Scenario } from '../scenario.ts';
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
    return Array.from({ length: Math.max(1, Math.floor((minutes * 60_000) / EVERY_MS) - 1) }, (_, i) => ({
      atMs: Math.min((i + 1) * EVERY_MS - EVERY_MS / 2, minutes * 30_000 + i * EVERY_MS),
      fault: 'replace_host',
      on: names[i % hosts] as string,
    }));
  },
  bars: (measures) => usualBars(measures, 1_000),
};
