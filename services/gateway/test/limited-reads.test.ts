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
