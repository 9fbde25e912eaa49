/** What people do beside each example crew, in its traces. */
import type { CrewPlay } from './crew-traces.ts';

/** See the top of the file. */
export const CREW_PLAYS: readonly CrewPlay[] = [
  {
    name: 'code-review',
    session: 'review',
    async people(crew) {
      // The edits, then the tests.
      await crew.decide('allow');
      await crew.decide('allow');
    },
  },
  { name: 'research', session: 'flood', async people() {} },
];
