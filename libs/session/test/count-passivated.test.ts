/**
 * Metrics of sessions: each is counted once, by its state, in memory or not, by the host with its partition.
 */
import type { Meters } from '@coxswain/ports';
import { partitionOf } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { PassivatedCount } from '../src/hosting/count-passivated.ts';
import { ask, call, say } from './fake-model.ts';
import { ASKING, refOf, testBed } from './test-bed.ts';

/** The current meters of one host. */
function gauges() {
  const taken = new Map<string, () => ReadonlyMap<string, number>>();
  const meters: Meters = {
    add() {},
    observe() {},
    census: (name, take) => {
      taken.set(name, take);
      return true;
    },
  };
  const read = (name: string) => Object.fromEntries(taken.get(`coxswain_${name}`)?.() ?? []);
  return { telemetry: { meters, spans: null }, read };
}

const PASSIVATING = { passivateAfterMs: 30_000, sweepEveryMs: 5_000 };

/** Two sessions: one that has ended its run, one with a pending approval. */
async function twoSessions() {
  const bed = testBed();
  bed.tools = { ask: {} };
  bed.models.answers = [say('done')];
  const first = gauges();
  const host = await bed.host({ ...PASSIVATING, name: 'one' }, { telemetry: first.telemetry });
  await bed.send('start', { prompt: 'Go.', model: 'fake/model' }, { session: 'ended' });
  bed.models.answers = [ask(call('c1', 'ask')), say('done')];
  await bed.send('start', { prompt: 'Go.', model: 'fake/model', permissions: ASKING }, { session: 'waits' });
  return { bed, host, first };
}
const BOTH = { stopped: 1, function_awaiting_approval: 1 };

test('passivated sessions are counted by state like those in memory, and once when they wake', async () => {
  const { bed, host, first } = await twoSessions();
  expect(first.read('sessions')).toEqual(BOTH);
  await bed.time.advance(60_000);
  expect(host.live).toBe(0);
  expect(first.read('sessions')).toEqual(BOTH);
  expect(first.read('approvals_waiting')).toEqual({ '': 1 });
  expect(first.read('approvals_oldest_seconds')['']).toBeGreaterThanOrEqual(60);
  await bed.send('approve', { call_id: 'c1', decision: 'allow' }, { session: 'waits' });
  expect(first.read('sessions')).toEqual({ stopped: 2 });
  expect(first.read('approvals_waiting')).toEqual({ '': 0 });
  expect(first.read('approvals_oldest_seconds')).toEqual({ '': 0 });
});

test('the next host counts what an earlier one passivated, and two hosts together count each session once', async () => {
  const { bed, host } = await twoSessions();
  await bed.time.advance(60_000);
  await Promise.all([host.stop(), bed.time.advance(20_000)]);
  const second = gauges();
  await bed.host({ ...PASSIVATING, name: 'two' }, { telemetry: second.telemetry });
  await bed.time.settle();
  expect(second.read('sessions')).toEqual(BOTH);
  expect(second.read('approvals_waiting')).toEqual({ '': 1 });
  const third = gauges();
  await bed.host({ ...PASSIVATING, name: 'three' }, { telemetry: third.telemetry });
  await bed.time.advance(60_000);
  const sum = (name: string) => {
    const counted: Record<string, number> = {};
    for (const { read } of [second, third])
      for (const [label, count] of Object.entries(read(name))) counted[label] = (counted[label] ?? 0) + count;
    return counted;
  };
  expect(sum('sessions')).toEqual(BOTH);
  expect(sum('approvals_waiting')).toEqual({ '': 1 });
});

test('a session whose host died before it passivated it is counted by its newest state', async () => {
  const { bed, host } = await twoSessions();
  host.abandon();
  const second = gauges();
  await bed.host({ ...PASSIVATING, name: 'two' }, { telemetry: second.telemetry });
  await bed.time.advance(90_000);
  expect(second.read('sessions')).toEqual(BOTH);
  expect(second.read('approvals_waiting')).toEqual({ '': 1 });
});

test('changes while a partition is read are counted, and a lost summary is read the next time', async () => {
  const bed = testBed();
  const ref = refOf('a');
  const partition = partitionOf(ref.sessionId);
  const names = Array.from({ length: 1_000 }, (_, at) => `b${at}`);
  const other = refOf(names.find((name) => partitionOf(name) === partition) ?? '');
  const stopped = { state: 'stopped', approvals: 0, oldestApprovalMs: null };
  const old = { ...stopped, state: 'model_request' };
  let stored = [
    { ref, summary: old },
    { ref: other, summary: old },
  ];
  const whileReading: (() => void)[] = [];
  const snapshots = {
    summaries: async (of: number) => {
      const answer = of === partition ? stored : [];
      for (const act of whileReading.splice(0)) act();
      return answer;
    },
  };
  const { clock, log } = bed.ports();
  const sessions = new PassivatedCount({ snapshots, clock, log, isHere: () => false });
  const states = () => [...sessions.summaries()].map(({ state }) => state).sort();
  whileReading.push(() => {
    sessions.add(ref, stopped);
    sessions.remove(other);
  });
  const ended = new AbortController();
  sessions.serve(new Set([partition]));
  void sessions.run(ended.signal);
  await bed.time.settle();
  expect(states()).toEqual(['stopped']);
  stored = [
    { ref, summary: stopped },
    { ref: other, summary: stopped },
  ];
  await bed.time.advance(60_000);
  expect(states()).toEqual(['stopped', 'stopped']);
  sessions.serve(new Set());
  expect(states()).toEqual([]);
  ended.abort();
});
