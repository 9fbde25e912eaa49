/** The README: its length, and a comparison that says what the page with the sources says. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { REPOSITORY } from '../e2e/kit/child.ts';

const README = readFileSync(join(REPOSITORY, 'README.md'), 'utf8');
const COMPARISON = readFileSync(join(REPOSITORY, 'docs/comparison.md'), 'utf8');

const cellsOf = (line: string): string[] =>
  line
    .slice(1, -1)
    .split('|')
    .map((cell) => cell.trim());

/** The rows of a page's section that is a table, without its head. */
function rowsOf(page: string, section: string): string[][] {
  const [, text = ''] = page.split(`\n## ${section}\n`);
  const lines = (text.split('\n## ')[0] ?? '').split('\n').filter((line) => line.startsWith('|'));
  return lines.map(cellsOf);
}

test('has at most 900 words', () => {
  expect(README.split(/\s+/).filter((word) => word !== '').length).toBeLessThanOrEqual(900);
});

const [head = [], , ...questions] = rowsOf(README, 'Comparison');
const systems = head.slice(1);

test('compares the seven systems by eleven questions', () =>
  expect([systems.length, questions.length]).toEqual([7, 11]));

test.each(systems.map((system, index) => [system, index + 1] as const))(
  'says of %s what the page with the sources says',
  (system, column) => {
    const [, , ...answers] = rowsOf(COMPARISON, system);
    expect(answers.map(([question]) => question)).toEqual(questions.map(([question]) => question));
    for (const [index, [question, answer = '', source]] of answers.entries()) {
      const short = questions[index]?.[column]?.replace('n. d.', 'not documented').replace('TS', 'TypeScript') ?? '';
      expect(answer.startsWith(short), `${question}: “${short}”, and “${answer}”`).toBe(true);
      expect(source, question).toMatch(/^\[.+\]\(.+\)$/);
    }
  },
);
