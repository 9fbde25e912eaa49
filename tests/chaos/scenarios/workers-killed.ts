/** Tool workers are killed -9, or stand still, under load. */

import type { Scenario } from '../scenario.ts';
import { workerNames } from '../world.ts';
import { usualBars } from './usual-bars.ts';

const EVERY_MS = 5_000;

/** See the top of the file. */
export const workersKilled: Scenario = {
  name: 'workers-killed',
  about: 'kill -9 or SIGSTOP of a tool worker every 5 s under load',
  defaults: { hosts: 2, workers: 3, sessions: 120, minutes: 2, replicas: 1, seed: 1 },
  faults({ workers, minutes }, random) {
    const names = workerNames(workers);
    return Array.from({ length: Math.max(1, Math.floor((minutes * 60_000) / EVERY_MS) - 1) }, (_, i) => ({
      atMs: Math.min((i + 1) * EVERY_MS, minutes * 30_000 + i * EVERY_MS),
      // None is struck again before it is back.
      fault: random.chance(0.6) ? 'kill_worker' : 'pause_worker',
      on: names[i % workers] as string,
      forMs: random.between(1_000, 4_000),
    }));
  },
  bars: (measures) => [
    ...usualBars(measures),
    { what: 'calls that ran again, as they may', value: measures.ranAgain, unit: '' },
    { what: 'calls told to the model as interrupted', value: measures.interrupted, unit: '' },
  ],
};
