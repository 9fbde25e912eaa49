/**
 * A long duel: `node --conditions=coxswain-source --import tsx tests/cluster/fence-duel-main.ts [MINUTES] [SESSIONS] [SEED]`.
 * Prints one JSON object, and ends with 1 where anything is wrong.
 */
import { createRandom } from '../simulation/random.ts';
import { startCluster } from './cluster.ts';
import { fightDuel, judgeDuel } from './fence-duel.ts';
import { type LeaderStrike, leaderStrikes, type Struck } from './leader-strikes.ts';

const [minutes = 5, sessions = 24, seed = 1] = process.argv.slice(2).map(Number);
const random = createRandom(seed).fork('strikes');
const KINDS: readonly LeaderStrike[] = ['kill', 'terminate', 'pause', 'step down'];

const cluster = await startCluster();
const struck: Struck[] = [];
const untilMs = performance.now() + minutes * 60_000;
const duel = await fightDuel(cluster, sessions, async (...args) => {
  while (performance.now() < untilMs)
    await leaderStrikes([random.pick(KINDS)], (what) => {
      struck.push(what);
      process.stderr.write(`${what.strike} ${what.leader}: led again after ${what.leaderlessMs} ms\n`);
    })(...args);
});
const wrong = judgeDuel(duel);
const outcomes = (outcome: string, writer = '') =>
  duel.told.filter((one) => one.outcome === outcome && one.id.startsWith(writer)).length;
const figures = {
  minutes,
  sessions,
  seed,
  appends: duel.told.length,
  stored: { w0: outcomes('stored', 'w0'), w1: outcomes('stored', 'w1') },
  refused: outcomes('foreign'),
  unanswered: outcomes('unavailable'),
  settled_after_doubt: duel.told.filter(({ doubts, outcome }) => doubts > 0 && outcome !== 'unavailable').length,
  records: [...duel.journals.values()].reduce((sum, records) => sum + records.length, 0),
  strikes: Object.fromEntries(
    KINDS.map((kind) => {
      const times = struck.filter(({ strike }) => strike === kind).map(({ leaderlessMs }) => leaderlessMs);
      times.sort((a, b) => a - b);
      return [kind, { times: times.length, medianMs: times[times.length >> 1] ?? null, maxMs: times.at(-1) ?? null }];
    }),
  ),
  wrong,
};
process.stdout.write(`${JSON.stringify(figures, null, 2)}\n`);
await cluster.stop();
process.exit(wrong.length > 0 ? 1 : 0);
