/** Every bound, one below it, at it and one above it, with its code. */
import { BOUNDS } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { OF_COMMANDS } from './bound-rows/of-commands.ts';
import { OF_COPIES } from './bound-rows/of-copies.ts';
import { OF_CREWS } from './bound-rows/of-crews.ts';
import { OF_HOOKS } from './bound-rows/of-hooks.ts';
import { OF_MEMORY } from './bound-rows/of-memory.ts';
import { OF_PERSONAS } from './bound-rows/of-personas.ts';
import { OF_RESULTS } from './bound-rows/of-results.ts';
import { OF_RUNS } from './bound-rows/of-runs.ts';
import type { BoundRow } from './bound-rows/row.ts';

const ROWS = {
  ...OF_COMMANDS,
  ...OF_COPIES,
  ...OF_CREWS,
  ...OF_HOOKS,
  ...OF_MEMORY,
  ...OF_PERSONAS,
  ...OF_RESULTS,
  ...OF_RUNS,
};

test('every bound has a row', () => {
  expect(Object.keys(ROWS).sort()).toEqual(Object.keys(BOUNDS).sort());
});

describe.each(Object.entries(ROWS) as [keyof typeof BOUNDS, BoundRow][])('%s', (bound, { of, comes }) => {
  const [under, at, over] = comes;

  // If both bounds apply, the more specific one is reported.
  if (under !== at)
    test(`one below it: ${under}`, async () => {
      expect(await of(BOUNDS[bound] - 1)).toBe(under);
    });

  test(`at it: ${at}`, async () => {
    expect(await of(BOUNDS[bound])).toBe(at);
  });

  test(`one above it: ${over}`, async () => {
    expect(await of(BOUNDS[bound] + 1)).toBe(over);
  });
});
