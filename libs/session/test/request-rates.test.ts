import { expect, test } from 'vitest';
import { RequestRates } from '../src/hosting/request-rates.ts';

test('a burst is allowed, then a rate per second; separately for each sender', () => {
  let now = 0;
  const rates = new RequestRates(3, 2, 10, () => now);
  expect([1, 2, 3].map(() => rates.take('a'))).toEqual([0, 0, 0]);
  expect(rates.take('a')).toBe(1);
  expect(rates.take('b')).toBe(0);
  now += 500;
  expect(rates.take('a')).toBe(0);
  expect(rates.take('a')).toBe(1);
  now += 60_000;
  expect([1, 2, 3, 4].map(() => rates.take('a'))).toEqual([0, 0, 0, 1]);
});

test('a clock that goes back changes nothing', () => {
  let now = 10_000;
  const rates = new RequestRates(1, 1, 10, () => now);
  expect(rates.take('a')).toBe(0);
  now = 0;
  expect(rates.take('a')).toBe(1);
});

test('a bounded number of senders is tracked: the least recently used starts again', () => {
  const rates = new RequestRates(1, 0.001, 2, () => 0);
  expect(rates.take('a')).toBe(0);
  expect(rates.take('b')).toBe(0);
  expect(rates.take('a')).toBe(1_000);
  expect(rates.take('c')).toBe(0);
  expect(rates.take('a')).toBe(1_000);
  expect(rates.take('b')).toBe(0);
});
