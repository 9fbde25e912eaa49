/**
 * The queue of claims.
 */
import type { ActiveSession } from '@coxswain/ports';
import { expect, test } from 'vitest';
import { ClaimQueue } from '../src/hosting/claim-queue.ts';
import { refOf } from './test-bed.ts';

/** Claims on demand of the test. */
function gate() {
  const claimed: ActiveSession[] = [];
  const waiting: (() => void)[] = [];
  const queue = new ClaimQueue((session) => {
    claimed.push(session);
    return new Promise<void>((resolve) => waiting.push(resolve));
  });
  const names = () => claimed.map(({ ref }) => ref.sessionId);
  const finish = async (count: number) => {
    for (const letGo of waiting.splice(0, count)) letGo();
    await new Promise(setImmediate);
  };
  return { queue, claimed, names, finish };
}

const session = (i: number, revision = i): ActiveSession => ({ ref: refOf(`s${i}`), host: null, revision });
const upTo = (count: number) => Array.from({ length: count }, (_, i) => `s${i}`);

test('32 sessions are claimed concurrently, the others follow in order', async () => {
  const { queue, names, finish } = gate();
  for (let i = 0; i < 100; i++) void queue.add(session(i));
  expect(names()).toEqual(upTo(32));
  await finish(2);
  expect(names()).toEqual(upTo(34));
  await finish(100);
  await finish(100);
  await finish(100);
  expect(names()).toEqual(upTo(100));
  // Later ones too, after the queue was empty.
  void queue.add(session(100));
  expect(names()).toEqual(upTo(101));
});

test('a queued session is claimed once, by its newest note', async () => {
  const { queue, claimed, finish } = gate();
  for (let i = 0; i < 33; i++) void queue.add(session(i));
  let done = 0;
  const both = Promise.all([7, 8].map((revision) => queue.add(session(32, revision)).then(() => done++)));
  await finish(32);
  expect(claimed).toHaveLength(33);
  expect(claimed.at(-1)?.revision).toBe(8);
  expect(done).toBe(0);
  await finish(1);
  await both;
  expect(done).toBe(2);
});

test('queued sessions are not claimed after the host has left everything', async () => {
  const { queue, names, finish } = gate();
  const all = Array.from({ length: 40 }, (_, i) => queue.add(session(i)));
  queue.clear();
  await Promise.all(all.slice(32));
  await finish(32);
  expect(names()).toEqual(upTo(32));
});
