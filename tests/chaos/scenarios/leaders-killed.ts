/** Three servers, and whoever leads the journals, or the commands, is killed, stopped where it stands, or ends in order. */
import type { Random } from '../../simulation/random.ts';
import type { PlannedFault } from '../nemesis.ts';
import type { RunOptions, Scenario } from '../scenario.ts';
import { openNodes } from '../server-nodes.ts';
import { SERVER_OPERATIONS } from '../server-operations.ts';
import { strikesEvery } from '../strikes-every.ts';
import { serverBars } from './server-bars.ts';

const EVERY_MS = 25_000;

/** A plan of strikes at leaders, each over before the next: two of three have to stand. */
export function leaderFaults({ minutes }: RunOptions, random: Random): PlannedFault[] {
  return strikesEvery({ everyMs: EVERY_MS, firstMs: EVERY_MS / 2, quietMs: 5_000 }, minutes, () => {
    const fault = random.pick(['kill_server', 'kill_server', 'pause_server', 'restart_server', 'step_down'] as const);
    const led = random.chance(0.7) ? 'journals' : 'commands';
    return {
      fault,
      on: fault === 'step_down' ? led : `leader of ${led}`,
      forMs: random.between(5_000, 12_000),
    };
  });
}

/** See the top of the file. */
export const leadersKilled: Scenario = {
  name: 'leaders-killed',
  about: 'kill -9, SIGSTOP, SIGTERM or step-down of a stream leader every 25 s; three servers',
  defaults: { hosts: 2, workers: 2, sessions: 40, minutes: 2, replicas: 3, seed: 1 },
  openServers: openNodes(),
  operations: SERVER_OPERATIONS,
  faults: leaderFaults,
  bars: (measures) => serverBars(measures),
};

/** The same, with hosts that hear nothing of each other: each takes every session for its own. */
export const rivals: Scenario = {
  ...leadersKilled,
  name: 'rivals',
  about: 'two hosts that both take every session for theirs, while stream leaders are struck; three servers',
  hostSetting: { isLonely: true },
  // Each start of a host makes it take up what the other one works on.
  operations: SERVER_OPERATIONS,
  faults: (options, random) => [
    ...leaderFaults(options, random),
    ...Array.from({ length: Math.floor((options.minutes * 60_000) / RIVALS_EVERY_MS) }, (_, i) => ({
      atMs: (i + 1) * RIVALS_EVERY_MS - RIVALS_EVERY_MS / 2,
      fault: 'restart_host',
      on: i % 2 === 0 ? 'b' : 'a',
    })),
  ],
};

const RIVALS_EVERY_MS = 10_000;
