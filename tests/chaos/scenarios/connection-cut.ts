/** The connection of one host, and later that of all clients, is cut for half a minute: nothing closes, nothing comes. */
import type { Scenario } from '../scenario.ts';
import { openNodes } from '../server-nodes.ts';
import { SERVER_OPERATIONS } from '../server-operations.ts';
import { serverBars } from './server-bars.ts';

const CUT_MS = 30_000;

/** See the top of the file. */
export const connectionCut: Scenario = {
  name: 'connection-cut',
  about: "a host's connection is cut for 30 s, then that of all clients",
  defaults: { hosts: 2, workers: 2, sessions: 60, minutes: 1.5, replicas: 1, seed: 1 },
  openServers: openNodes({ size: 1, cables: ['a', 'clients'] }),
  operations: SERVER_OPERATIONS,
  faults: ({ minutes }) => [
    { atMs: minutes * 6_000, fault: 'cut_cable', on: 'a', forMs: CUT_MS },
    { atMs: minutes * 30_000, fault: 'cut_cable', on: 'clients', forMs: CUT_MS },
  ],
  bars: (measures) => serverBars(measures),
};
