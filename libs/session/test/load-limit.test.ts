/**
 * Bounded concurrency of loads: with many notifications a host continues the first session before it loads the last.
 */
import type { StoredRecord } from '@coxswain/ports';
import { expect, test } from 'vitest';
import { CONCURRENCY, LoadLimit } from '../src/hosting/load-limit.ts';
import { say } from './fake-model.ts';
import { testBed } from './test-bed.ts';

test('a bounded number runs at a time, in order, and a failure frees its place', async () => {
  const limit = new LoadLimit(testBed().time.clock('host'));
  const began: number[] = [];
  const ends: (() => void)[] = [];
  const loads = Array.from({ length: CONCURRENCY + 2 }, (_, i) =>
    limit.take(async () => {
      began.push(i);
      await new Promise<void>((resolve) => ends.push(resolve));
      if (i === 0) throw new Error('not readable');
      return i;
    }),
  );
  const outcomes = Promise.allSettled(loads);
  expect(began).toHaveLength(CONCURRENCY);
  for (let i = 0; i < loads.length; i++) {
    ends[i]?.();
    await new Promise(setImmediate);
  }
  expect(began).toEqual(loads.map((_, i) => i));
  expect((await outcomes).map(({ status }) => status)).toEqual(
    loads.map((_, i) => (i === 0 ? 'rejected' : 'fulfilled')),
  );
});

test('a load that does not end frees its place after a bounded time', async () => {
  const { time } = testBed();
  const limit = new LoadLimit(time.clock('host'));
  for (let i = 0; i < CONCURRENCY; i++) void limit.take(() => new Promise(() => {}));
  let began = false;
  void limit.take(async () => {
    began = true;
  });
  await time.advance(1_900);
  expect(began).toBe(false);
  await time.advance(200);
  expect(began).toBe(true);
});

test('commands for 200 sessions outside of memory: a bounded number is loaded at a time, and the first one runs meanwhile', {
  timeout: 60_000,
}, async () => {
  const bed = testBed();
  const { read } = bed.journal;
  let underWay = 0;
  let most = 0;
  let whole = 0;
  const recordedWhen: number[] = [];
  bed.journal.read = async function* (ref, fence): AsyncGenerator<StoredRecord, void, undefined> {
    most = Math.max(most, ++underWay);
    try {
      await bed.time.clock('store').sleep(10);
      yield* read.call(bed.journal, ref, fence);
    } finally {
      underWay--;
      whole++;
    }
  };
  const { append } = bed.journal;
  bed.journal.append = (ref, bytes, fence) => {
    recordedWhen.push(whole);
    return append.call(bed.journal, ref, bytes, fence);
  };
  bed.models.answers = Array.from({ length: 200 }, () => say('done'));
  await bed.host();
  await Promise.all(Array.from({ length: 200 }, (_, i) => bed.start({}, { session: `s${i}` })));
  await bed.time.advance(10_000);
  expect(most).toBe(CONCURRENCY);
  expect(recordedWhen[0]).toBeLessThanOrEqual(2 * CONCURRENCY);
  expect((await bed.lines('s199')).at(-1)).toBe('agent_end end_turn');
});
