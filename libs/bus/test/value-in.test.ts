/** Values of messages, which are untrusted. */
import { expect, test, vi } from 'vitest';
import { valueIn } from '../src/mod.ts';

test('a value that is too large, not JSON or of too many members is rejected before its schema sees it', () => {
  const safeParse = vi.fn((data: unknown) => ({ data }));
  const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`k${i}`, 0]));
  expect(valueIn('{"a":1}', { safeParse })).toEqual({ a: 1 });
  expect(safeParse).toHaveBeenCalledTimes(1);
  expect(valueIn(JSON.stringify(many), { safeParse })).toBeNull();
  expect(valueIn(Buffer.from(JSON.stringify('x'.repeat(2_000_000))), { safeParse })).toBeNull();
  expect(valueIn('{"a":1}', { safeParse }, 6)).toBeNull();
  expect(valueIn('{"a":', { safeParse })).toBeNull();
  expect(safeParse).toHaveBeenCalledTimes(1);
});
