/** Hundreds of schedules in which something goes wrong: nothing is lost, nothing is done twice, everything ends. */
import { describe, expect, test } from 'vitest';
import { type Coverage, cover, MUST_REACH } from './coverage.ts';
import { simulate } from './simulate.ts';

const SEEDS = 500;
const BATCH = 50;
const coverage: Coverage = new Map();

describe(`${SEEDS} seeded schedules of crashes, rivals, pauses, outages and lost answers`, () => {
  // In batches, so that a failure names its neighbourhood and no single test runs for long.
  test.each(Array.from({ length: SEEDS / BATCH }, (_, i) => 1 + i * BATCH))(
    'seeds from %i on',
    { timeout: 60_000 },
    async (first) => {
      for (let seed = first; seed < first + BATCH; seed++) {
        const simulation = await simulate(seed);
        cover(coverage, simulation);
        expect(simulation.problems, `again with: npm run sim -- --seed ${seed}`).toEqual([]);
      }
    },
  );

  test('reach every corner that they are there for', () => {
    expect(MUST_REACH.filter((what) => !coverage.has(what))).toEqual([]);
  });
});

test('the same seed gives the same history, to the last byte, and another seed another', {
  timeout: 60_000,
}, async () => {
  const hashes = new Map<number, string>();
  for (const seed of [3, 11, 42, 115, 231]) {
    const [first, second] = [await simulate(seed), await simulate(seed)];
    expect(second.history.hash(), `seed ${seed}`).toBe(first.history.hash());
    expect(first.history.entries.length).toBeGreaterThan(10);
    hashes.set(seed, first.history.hash());
  }
  expect(new Set(hashes.values()).size).toBe(hashes.size);
});
