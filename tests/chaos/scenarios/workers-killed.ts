/** Tool workers are killed -9, or stand still, under load. */

import type { Scenario } from '../scenario.ts';
import { strikesEvery } from '../strikes-every.ts';
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
    return strikesEvery({ everyMs: EVERY_MS }, minutes, (i) => ({
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
