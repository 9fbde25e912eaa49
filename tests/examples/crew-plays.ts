/** What people do beside each example crew, in its traces. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createCodeTools } from '@coxswain/adapter-tools';
import { refundTool } from '../../examples/crews/support-desk/refund-tool.ts';
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
  {
    name: 'support-desk',
    session: 'desk',
    async tools({ folder }) {
      return [createCodeTools([refundTool(join(folder, 'input/desk/orders.csv'), join(folder, 'work/ledger'))])];
    },
    async people(crew, { folder }) {
      const tickets = join(folder, 'input/tickets');
      for (const ticket of (await readdir(tickets)).sort())
        await crew.send('followup', { body: await readFile(join(tickets, ticket), 'utf8') });
      await crew.wait(10_000);
      await crew.decide('allow');
    },
  },
];
