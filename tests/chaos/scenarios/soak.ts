/**
 * Steady load without faults: sessions come and go, and memory has to be flat. Flat is: of the samples after a warm-up of a
 * sixth of them, the median of the last third is at most a tenth above that of the first.
 */
import type { Measures } from '../measures.ts';
import type { Bar, Scenario } from '../scenario.ts';
import { usualBars } from './usual-bars.ts';

const GROWS_AT_MOST = 1.1;

/** See the top of the file. */
export const soak: Scenario = {
  name: 'soak',
  about: 'steady load with sessions that come and go; memory of hosts and server has to be flat',
  defaults: { hosts: 2, workers: 1, sessions: 100, minutes: 30, replicas: 1, seed: 1 },
  // A session's transcript grows with it: what lives for ever is no steady load.
  load: { lifeMs: 60_000 },
  faults: () => [],
  bars: (measures) => [...usualBars(measures), ...memoryBars(measures)],
};

function memoryBars({ memory }: Measures): Bar[] {
  return (['host', 'worker', 'server'] as const).flatMap((role) => {
    const course = memory[role];
    if (!course) return [];
    return [
      {
        what: `memory of all ${role}s, last third to first`,
        value: Math.round((course.lastMib / course.firstMib) * 1_000) / 1_000,
        unit: '×',
        atMost: GROWS_AT_MOST,
      },
      { what: `memory of all ${role}s in the end`, value: Math.round(course.lastMib), unit: 'MiB' },
    ];
  });
}
