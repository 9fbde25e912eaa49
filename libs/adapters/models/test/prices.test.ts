/** Tables of prices: the built-in one, and files. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { globMatches, PriceTable } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { KNOWN_PRICES, readPrices } from '../src/mod.ts';

const folder = mkdtempSync(join(tmpdir(), 'prices-'));
const file = (text: string): string => {
  const path = join(folder, 'prices.yaml');
  writeFileSync(path, text);
  return path;
};

describe('the built-in table', () => {
  test('is a table', () => {
    expect(PriceTable.parse(KNOWN_PRICES)).toEqual(KNOWN_PRICES);
  });

  test.each([
    ['anthropic/claude-sonnet-4-5', 3],
    ['anthropic/claude-sonnet-4-5-20250929', 3],
    ['openai/gpt-5', 1.25],
    ['openai/gpt-5-mini', 0.25],
    ['openai/gpt-5.2', 1.75],
    ['openai-chat/gpt-4.1', 2],
    ['gemini/gemini-2.5-pro', 1.25],
    ['google/gemini-2.5-flash-lite', 0.1],
    // A later model of the family may cost anything.
    ['anthropic/claude-sonnet-5', undefined],
    ['openai/gpt-5.9', undefined],
    ['openai-compatible/gpt-5', undefined],
    ['scripted/gpt-5', undefined],
  ])('%s costs %s per million tokens in', (model, input) => {
    expect(KNOWN_PRICES.find((row) => globMatches(row.model, model))?.input).toBe(input);
  });
});

describe('a file of prices', () => {
  test('is read as YAML', async () => {
    const path = file('prices:\n  - {model: "my/*", input: 0.5, output: 1, cached_input: 0.1}\n');
    expect(await readPrices(path)).toEqual([{ model: 'my/*', input: 0.5, output: 1, cached_input: 0.1 }]);
  });

  test.each([
    ['no table', 'prices: 3', /prices: must be a list/],
    ['a misspelt key', 'prices: [{model: m, in: 1, output: 1}]', /in/],
    ['a key beside it', 'price: []', /price/],
    ['no YAML', 'prices: [', /prices\.yaml/],
  ])('is refused with %s, naming the file', async (_what, text, problem) => {
    await expect(readPrices(file(text))).rejects.toThrow(problem);
    await expect(readPrices(file(text))).rejects.toMatchObject({ code: 'prices_unreadable' });
  });

  test('is refused where it is not there', async () => {
    await expect(readPrices(join(folder, 'none.yaml'))).rejects.toMatchObject({ code: 'prices_unreadable' });
  });
});
