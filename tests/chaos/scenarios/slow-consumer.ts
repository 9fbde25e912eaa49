/** Somebody on the bus asks for everything and reads nothing. */
import type { Scenario } from '../scenario.ts';
import { openNodes } from '../server-nodes.ts';
import { SERVER_OPERATIONS } from '../server-operations.ts';
import { serverBars } from './server-bars.ts';

/** See the top of the file. */
export const slowConsumer: Scenario = {
  name: 'slow-consumer',
  about: 'a client that subscribes to everything and never reads, while more is published than a server keeps for it',
  defaults: { hosts: 2, workers: 1, sessions: 60, minutes: 1, replicas: 1, seed: 1 },
  openServers: openNodes({ size: 1 }),
  operations: SERVER_OPERATIONS,
  faults: ({ minutes }) => [{ atMs: minutes * 20_000, fault: 'slow_consumer', on: 'the bus' }],
  bars: (measures) => serverBars(measures),
};
