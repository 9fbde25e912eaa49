import { expect, test } from 'vitest';
import { readBenchOptions } from './bench-options.ts';

const PARTS = ['steps', 'turn'];

test('options have defaults, and lists may be separated by commas', () => {
  expect(readBenchOptions([], PARTS)).toEqual({ quick: false, only: [], rounds: 4, nodes: [] });
  const args = ['--quick', '--only', 'steps,turn', '--node', '20.19', '--node', '24'];
  expect(readBenchOptions(args, PARTS)).toEqual({ quick: true, only: PARTS, rounds: 1, nodes: ['20.19', '24'] });
});

test('--help prints the usage, which names the parts', () => {
  expect(readBenchOptions(['--help'], PARTS)).toMatchObject({
    problem: null,
    usage: expect.stringMatching('steps, turn'),
  });
});

test.each([
  [['extra'], /extra/],
  [['--quick=1'], /quick/],
  [['--fast'], /fast/],
  [['--only'], /only/],
  [['--only', 'steps,other'], /^no such part: other$/],
  [['--rounds', '0'], /^--rounds takes/],
])('%j is refused with the problem and the usage', (args, problem) => {
  const refused = readBenchOptions(args, PARTS);
  expect(refused).toMatchObject({
    problem: expect.stringMatching(problem),
    usage: expect.stringMatching(/^npm run bench/),
  });
});
