/** Joining an instance that another process is just starting. */
import type { BusInfo } from '@coxswain/client';
import { expect, test } from 'vitest';
import { untilPrepared } from '../src/instance/mod.ts';

/** An instance with so many of its three streams at each look; the last number stays. */
function instance(...present: readonly number[]) {
  const gone = new AbortController();
  let looks = 0;
  const busInfo = async (): Promise<BusInfo> => {
    const count = present[Math.min(looks++, present.length - 1)] ?? 0;
    const streams = [0, 1, 2].map((at) => ({ name: `S${at}`, present: at < count })) as unknown as BusInfo['streams'];
    return { serverVersion: '2.15.1', jetstream: true, streams };
  };
  return { joined: { client: { busInfo }, gone: gone.signal }, gone, looks: () => looks };
}

const FAR_MS = 8.64e15;

test('an instance is used when all of its streams exist', async () => {
  const { joined, looks } = instance(0, 2, 3);
  expect(await untilPrepared(joined, FAR_MS)).toBe(true);
  expect(looks()).toBe(3);
});

test('an instance that ends before is not used; one that creates no streams is used after the bound', async () => {
  const ending = instance(0);
  const waiting = untilPrepared(ending.joined, FAR_MS);
  ending.gone.abort();
  expect(await waiting).toBe(false);
  expect(await untilPrepared(instance(0).joined, 0)).toBe(true);
});
