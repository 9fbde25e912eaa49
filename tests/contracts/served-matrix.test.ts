/**
 * Instances of every kind of served work that are killed or frozen, on virtual time: 5 seeds for each cell, with `COX_NIGHTLY`
 * 100 and a table of the results. `COX_SEED` starts at another seed.
 */
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { SERVED_KINDS } from './served-kinds.ts';
import { brokenRules, FAILURES, type MatrixRun, MOMENTS, runMatrixCell } from './served-matrix.ts';
import { useVirtualTime } from './served-stage.ts';

const seeds = process.env.COX_NIGHTLY ? 100 : 5;
const firstSeed = Number(process.env.COX_SEED ?? 1);
const rows: Record<string, string | number>[] = [];

beforeEach(useVirtualTime);
afterEach(() => void vi.useRealTimers());
afterAll(() => {
  if (process.env.COX_NIGHTLY) console.table(rows);
});

describe.each(SERVED_KINDS.map((kind) => [kind.title, kind] as const))('%s', (title, kind) => {
  const cells = FAILURES.flatMap((failure) =>
    [2, 3].flatMap((instances) => MOMENTS.map((moment) => ({ kind, failure, instances, moment }))),
  );
  test.each(cells)('ends once and in time: $failure one of $instances instances $moment', async (cell) => {
    const broken: string[] = [];
    const runs: MatrixRun[] = [];
    for (let seed = firstSeed; seed < firstSeed + seeds; seed++) {
      vi.clearAllTimers();
      const run = await runMatrixCell(cell, seed);
      runs.push(run);
      broken.push(...brokenRules(cell, run).map((rule) => `seed ${seed}: ${rule}`));
    }
    const { failure, instances, moment } = cell;
    const count = (holds: (run: MatrixRun) => boolean) => runs.filter(holds).length;
    rows.push({
      kind: title,
      cell: `${failure} 1 of ${instances} ${moment}`,
      answered: count(({ ending }) => ending?.status === 'answered'),
      lost: count(({ ending }) => ending?.status === 'lost'),
      'started twice': count(({ starts }) => starts.length > 1),
      'longest wait, s': (Math.max(...runs.map(({ waitedMs }) => waitedMs)) / 1_000).toFixed(1),
    });
    expect(broken).toEqual([]);
  });
});
