/** Crews under trouble, for some seeds: see crews.ts. A failure prints its seed. */
import { describe, expect, test } from 'vitest';
import { type CrewSimulation, simulateCrew } from './crews.ts';

/** `npm test` plays some; the nightly run plays more. */
const SEEDS = Array.from({ length: process.env.COX_NIGHTLY === '1' ? 240 : 12 }, (_, seed) => seed + 1);
const done: CrewSimulation[] = [];

describe('crews under trouble', () => {
  test.each(SEEDS)('seed %i', async (seed) => {
    const simulation = await simulateCrew(seed);
    expect(simulation.problems).toEqual([]);
    done.push(simulation);
  });

  test('these seeds delegate, begin again, cancel, and do neither', () => {
    expect(done.some(({ delegations }) => delegations >= 8)).toBe(true);
    expect(done.some(({ restarts }) => restarts > 0)).toBe(true);
    expect(new Set(done.map(({ cancelled }) => cancelled)).size).toBe(2);
  });

  test('without trouble everybody answers, and it takes no longer than that', async () => {
    const { problems, delegations, tookMs } = await simulateCrew(1, true);
    expect([problems, delegations > 0, tookMs < 30_000]).toEqual([[], true, true]);
  });
});
