/** docs/guides/testing.md: every program in it is run as it stands. */
import { afterAll, expect, test, vi } from 'vitest';
import { guidePrograms } from './kit/guide-programs.ts';

vi.setConfig({ testTimeout: 120_000 });

/** How many tests each program has, in order. */
const TESTS = [3, 1, 2];

const programs = await guidePrograms('testing.md');
afterAll(() => programs.remove());

test('has as many programs as are looked at here', () => expect(programs.texts).toHaveLength(TESTS.length));

test.each(TESTS.map((tests, index) => [index + 1, tests] as const))('program %i passes', async (number, tests) => {
  const child = await programs.start(number, {});
  expect(await child.exited, child.stdout + child.stderr).toEqual({ code: 0, signal: null });
  expect(child.stdout).toMatch(new RegExp(`^(ℹ|#) pass ${tests}$`, 'm'));
});
