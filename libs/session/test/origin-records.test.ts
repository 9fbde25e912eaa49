/** The journal that a copy is made from: looked at, and then copied, with one reading as far as it may be kept. */
import type { Journal } from '@coxswain/ports';
import { sessionRef } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { OriginAwayError, OriginRecords } from '../src/journal/origin-records.ts';

const MEGABYTE = 1024 * 1024;

/** A journal of records of one megabyte, numbered by their first byte, and from where on it was read. */
function journalOf(count: number, breaksAt = Number.POSITIVE_INFINITY) {
  const from: number[] = [];
  const journal: Pick<Journal, 'read'> = {
    async *read(_ref, fence = 0) {
      from.push(fence);
      for (let n = fence + 1; n <= count; n++) {
        if (n === breaksAt) throw new Error('no leader');
        yield { bytes: new Uint8Array(MEGABYTE).fill(n), fence: n };
      }
    },
  };
  return { from, origin: new OriginRecords(journal as Journal, sessionRef('s1')) };
}

async function numbersOf(origin: OriginRecords, upTo = Number.POSITIVE_INFINITY): Promise<number[]> {
  const numbers: number[] = [];
  for await (const [number = 0] of origin.read()) {
    numbers.push(number);
    if (number === upTo) break;
  }
  return numbers;
}

test('a second read reuses the kept records and reads the rest', async () => {
  const { from, origin } = journalOf(5);
  expect(await numbersOf(origin, 3)).toEqual([1, 2, 3]);
  expect(await numbersOf(origin, 3)).toEqual([1, 2, 3]);
  expect(from).toEqual([0]);
  expect(await numbersOf(origin)).toEqual([1, 2, 3, 4, 5]);
  expect(from).toEqual([0, 3]);
});

test('only the start of a long journal is kept', async () => {
  const { from, origin } = journalOf(12);
  const all = await numbersOf(origin);
  expect(all).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
  expect(await numbersOf(origin)).toEqual(all);
  expect(await numbersOf(origin)).toEqual(all);
  expect(from).toEqual([0, 8, 8]);
});

test('an unavailable store is not an error of the origin', async () => {
  await expect(numbersOf(journalOf(5, 3).origin)).rejects.toThrow(OriginAwayError);
});
