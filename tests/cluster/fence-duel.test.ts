/** The fence in a cluster that keeps losing its leader: whatever a writer is told is so, and nobody slips in between. */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type Cluster, startCluster } from './cluster.ts';
import { type Duel, fightDuel, judgeDuel } from './fence-duel.ts';
import { type LeaderStrike, leaderStrikes } from './leader-strikes.ts';

vi.setConfig({ testTimeout: 240_000, hookTimeout: 300_000 });

const SESSIONS = 12;
/** `npm test` has the one that gives the leader no time; the nightly run has all. */
const STRIKES: readonly LeaderStrike[] =
  process.env.COX_NIGHTLY === '1' ? ['kill', 'terminate', 'pause', 'step down'] : ['kill'];

describe('two writers at the same journals', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await startCluster();
  });
  afterAll(() => cluster?.stop());

  it.each(STRIKES)('agree on every record over a leader struck by %s', async (strike) => {
    const duel = await fightDuel(cluster, SESSIONS, leaderStrikes([strike]));
    expect(judgeDuel(duel)).toEqual([]);
    // Both have won, and both have lost: else there was nothing to decide.
    for (const writer of ['w0', 'w1'])
      for (const outcome of ['stored', 'foreign'])
        expect(duel.told.some((one) => one.id.startsWith(writer) && one.outcome === outcome)).toBe(true);
  });
});

describe('the judge of a duel', () => {
  const told = [
    { id: 'a', sessionId: 's', fence: 0, outcome: 'stored', seq: 3, doubts: 0 },
    { id: 'b', sessionId: 's', fence: 3, outcome: 'foreign', seq: null, doubts: 0 },
    { id: 'c', sessionId: 's', fence: 3, outcome: 'unavailable', seq: null, doubts: 1 },
  ] as const;
  const duelOf = (records: readonly { id: string; fence: number; seq: number }[], replica = records): Duel => ({
    told,
    journals: new Map([['s', records]]),
    replicas: new Map([['n1', new Map([['s', replica]])]]),
  });
  const [a, b, c] = [
    { id: 'a', fence: 0, seq: 3 },
    { id: 'b', fence: 3, seq: 4 },
    { id: 'c', fence: 3, seq: 5 },
  ] as const;

  it('takes an append that nobody answered for stored or not, as it stands', () => {
    expect(judgeDuel(duelOf([a]))).toEqual([]);
    expect(judgeDuel(duelOf([a, c]))).toEqual([]);
  });

  it.each([
    ['an acknowledged append is missing', duelOf([])],
    ['it stands elsewhere', duelOf([{ ...a, seq: 4 }])],
    ['one was refused and stands', duelOf([a, b])],
    ['two follow the same', duelOf([a, c, { id: 'd', fence: 3, seq: 9 }])],
    ['one stands twice', duelOf([a, { ...a, fence: 3, seq: 4 }])],
    ['a replica differs', duelOf([a, c], [a])],
  ])('says so where %s', (_what, duel) => {
    expect(judgeDuel(duel)).not.toEqual([]);
  });
});
