import { expect, test } from 'vitest';
import { LimitedReads } from '../src/limited-reads.ts';

test('so many read at once; the next waits for a slot, and too many who wait are refused', async () => {
  const reads = new LimitedReads(1, 1);
  const release = await reads.acquire();
  const order: string[] = [];
  const second = reads.run(async () => void order.push('second'));
  await expect(reads.acquire()).rejects.toMatchObject({ code: 'gateway_busy' });
  expect(order).toEqual([]);
  release();
  await second;
  expect(order).toEqual(['second']);
});

test('a slot is given back once, also where a read fails', async () => {
  const reads = new LimitedReads(1, 0);
  await expect(reads.run(() => Promise.reject(new Error('gone')))).rejects.toThrow('gone');
  const release = await reads.acquire();
  release();
  release();
  await reads.acquire();
  await expect(reads.acquire()).rejects.toMatchObject({ code: 'gateway_busy' });
});

test('who does not wait any more gives the place up, and what was to be read is not', async () => {
  const reads = new LimitedReads(1, 1);
  const release = await reads.acquire();
  const gone = new AbortController();
  const begun: string[] = [];
  const left = reads.run(async () => begun.push('left'), gone.signal);
  await expect(reads.acquire()).rejects.toMatchObject({ code: 'gateway_busy' });
  gone.abort(new Error('gone'));
  await expect(left).rejects.toThrow('gone');
  const next = reads.run(async () => begun.push('next'));
  release();
  await next;
  expect(begun).toEqual(['next']);
  // The slot that nobody took was handed on, and is free again.
  (await reads.acquire())();
  await expect(reads.run(async () => begun.push('late'), gone.signal)).rejects.toThrow('gone');
  expect(begun).toEqual(['next']);
});
