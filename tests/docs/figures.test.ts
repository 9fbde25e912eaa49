/** Every measured figure of the FAQ is in the dated table of benchmark results, and counts on pages are those of the code. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { JOURNAL_STREAMS, STREAMS } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { median } from '../bench/figures.ts';
import { REPOSITORY } from '../e2e/kit/child.ts';

const read = (page: string) => readFileSync(join(REPOSITORY, 'docs', page), 'utf8');
const FAQ = read('faq.md');
const RESULTS = read('reports/benchmarks.md');

function sectionOf(title: string): string {
  const section = FAQ.split(/^## /m).find((one) => one.startsWith(`${title}\n`));
  if (!section) throw new Error(`the FAQ has no section ${title}`);
  return section;
}

test.each([
  'How fast is it?',
  'How quickly does a message reach a running agent?',
  'Is it faster than Restate?',
  'How long does a failover take?',
  'How many idle sessions can I keep?',
])('%s', (title) => {
  const section = sectionOf(title);
  const rows = section.match(/^\| .*\d.*$/gm) ?? [];
  const results = RESULTS.split('\n');
  for (const row of rows) expect(results.filter((line) => line.startsWith(row.replace(/ \|$/, '')))).toHaveLength(1);
  expectMeasured(section.match(/\d[\d.,]* (?:ms|s|bytes|KiB|calls)\b/g) ?? []);
});

test('every missed goal of the FAQ, and what was reached, is in the results', () => {
  const rows = sectionOf('Which goals of speed and memory are missed?').match(/^\| .*\d.*$/gm) ?? [];
  expect(rows).not.toHaveLength(0);
  for (const row of rows) expectMeasured(row.match(/\d[\d.,]* (?:ms|s|bytes|KiB|µs)(?!\w)|\b\d\.\d+/g) ?? []);
});

/** Expects figures, and each of them in the results. */
function expectMeasured(figures: readonly string[]): void {
  expect(figures).not.toHaveLength(0);
  for (const figure of figures)
    expect(RESULTS).toMatch(new RegExp(`(?<![\\d.,])${figure.replace('.', '\\.')}(?![\\w])`));
}

test('a median of an even number lies halfway between the two in the middle', () => {
  expect(median([4, 1, 3])).toBe(3);
  expect(median([723, 786, 995, 997])).toBe(890.5);
});

test('the outputs of cox admin streams and cox doctor have the number of streams', () => {
  const pages = readdirSync(join(REPOSITORY, 'docs/operations')).map((page) => read(`operations/${page}`));
  const counts = pages.flatMap(
    (page) => page.match(/\d+ streams (?:and buckets exist|with free space)|of \d+ streams checked/g) ?? [],
  );
  const all = JOURNAL_STREAMS.length + Object.keys(STREAMS).length;
  expect([...new Set(counts)].sort()).toEqual([
    `${all} streams and buckets exist`,
    `${all} streams with free space`,
    // Not the bucket of heartbeats.
    `of ${all - 1} streams checked`,
  ]);
});
