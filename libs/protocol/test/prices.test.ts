/**
 * Costs of answers, in integers.
 */
import { describe, expect, test } from 'vitest';
import { costNanoUsd, nanoUsdOf, PriceTable, pinnedPrice, usdOf } from '../src/mod.ts';

const SONNET = pinnedPrice({ model: 'm/*', input: 3, cached_input: 0.3, output: 15 });

test.each([
  ['nothing', {}, 0],
  ['a token in', { input_tokens: 1 }, 3_000],
  ['a token out', { output_tokens: 1 }, 15_000],
  ['a cached token in', { input_tokens: 1, cached_input_tokens: 1 }, 300],
  ['some of it cached', { input_tokens: 1_000, cached_input_tokens: 900, output_tokens: 10 }, 720_000],
  ['more cached than came in', { input_tokens: 1, cached_input_tokens: 5 }, 300],
  ['reasoning stands in the output already', { output_tokens: 5, reasoning_tokens: 5 }, 75_000],
  ['a million of each', { input_tokens: 1_000_000, output_tokens: 1_000_000 }, 18_000_000_000],
])('%s', (_what, usage, nano) => {
  expect(costNanoUsd(SONNET, { input_tokens: 0, output_tokens: 0, ...usage })).toBe(nano);
});

test('a fraction of a nano-USD is rounded up', () => {
  const price = pinnedPrice({ model: 'm', input: 0.0375, output: 0 });
  expect(costNanoUsd(price, { input_tokens: 1, output_tokens: 0 })).toBe(38);
  expect(costNanoUsd(price, { input_tokens: 2, output_tokens: 0 })).toBe(75);
});

test('cached input has the price of other input by default', () => {
  expect(pinnedPrice({ model: 'm', input: 2, output: 8 }).cached_input_micro_usd).toBe(2_000_000);
});

test('sums are converted to integers and back without a loss', () => {
  for (const usd of [0.1, 0.2, 0.3, 1.005, 0.000_001, 999_999.99]) expect(usdOf(nanoUsdOf(usd))).toBe(usd);
  expect(nanoUsdOf(0.1) + nanoUsdOf(0.2)).toBe(nanoUsdOf(0.3));
});

describe('a price table is rejected with', () => {
  const row = { model: 'm', input: 1, output: 1 };
  test.each([
    ['an unknown key', [{ ...row, currency: 'EUR' }]],
    ['a price below nothing', [{ ...row, input: -1 }]],
    ['no price', [{ model: 'm', input: 1 }]],
    ['no model', [{ ...row, model: ' ' }]],
    ['a price beyond belief', [{ ...row, output: 1_001 }]],
  ])('%s', (_what, table) => {
    expect(PriceTable.safeParse(table).success).toBe(false);
  });
});
