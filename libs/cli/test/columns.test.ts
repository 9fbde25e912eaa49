import { expect, test } from 'vitest';
import { columnsOf, headWithinColumns } from '../src/terminal/mod.ts';

test.each([
  ['abc', 3],
  ['漢字', 4],
  ['e\u0301', 1],
  ['👩‍👩‍👧', 2],
  ['', 0],
])('%s takes %i columns', (text, columns) => {
  expect(columnsOf(text)).toBe(columns);
});

test('a text that fits is unchanged', () => {
  expect(headWithinColumns('漢字', 4)).toBe('漢字');
});

test('a longer text is cut between characters and ends with an ellipsis', () => {
  expect(headWithinColumns('漢字漢字', 6)).toBe('漢字…');
  expect(headWithinColumns('e\u0301x', 1)).toBe('…');
});

test('a very long text is cut to its columns', () => {
  for (const text of ['漢'.repeat(100_000), 'a'.repeat(200_000), `${'a'.repeat(9)}漢`.repeat(10_000)]) {
    expect(columnsOf(headWithinColumns(text, 40))).toBeLessThanOrEqual(40);
    expect(columnsOf(headWithinColumns(text, 40))).toBeGreaterThan(37);
  }
});
