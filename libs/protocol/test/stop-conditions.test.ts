/** Conditions on an answer's text. */
import { expect, test } from 'vitest';
import { BOUNDS, StopCondition, textStops } from '../src/mod.ts';

test.each([
  ['DONE', 'all DONE now', true],
  ['DONE', 'all done now', false],
  // Only a text between slashes is a regular expression.
  ['a.c', 'abc', false],
  ['a/b', 'a/b', true],
  ['/', 'a/b', true],
  ['//', 'a//b', true],
  ['/a.c/', 'xabcx', true],
  ['/^done$/', 'not done', false],
  ['/^done$/m', 'not yet\ndone', true],
  ['/^DONE$/i', 'done', true],
  ['/a.b/', 'a\nb', false],
  ['/a.b/s', 'a\nb', true],
  ['/done/x', 'done', false],
])('%j in %j: %s', (condition, text, holds) => {
  expect(StopCondition.parse({ text: condition })).toEqual({ text: condition });
  expect(textStops(condition, text)).toBe(holds);
});

test('an expression that would block a backtracking engine is matched in linear time', () => {
  const text = `${'a'.repeat(100_000)}!`;
  expect(textStops('/^(a+)+$/', text)).toBe(false);
});

test('a text is at most as long as any pattern', () => {
  expect(StopCondition.safeParse({ text: 'x'.repeat(BOUNDS.patternMaxChars) }).success).toBe(true);
  expect(StopCondition.safeParse({ text: 'x'.repeat(BOUNDS.patternMaxChars + 1) }).success).toBe(false);
});
