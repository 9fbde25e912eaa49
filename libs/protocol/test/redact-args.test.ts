import { expect, test } from 'vitest';
import { type Json, redactArgs } from '../src/mod.ts';

/** Lists in lists, with 16 members each. */
function nested(depth: number, leaf: Json): Json {
  return depth === 0 ? leaf : Array.from({ length: 16 }, () => nested(depth - 1, leaf));
}

test.each<[string, Json]>([
  ['texts', nested(4, 'x'.repeat(300))],
  ['numbers', nested(4, 123_456)],
  ['empty lists', nested(3, [])],
  ['deep lists', nested(5, 1)],
])('shown arguments are bounded: %s', (_what, args) => {
  expect(JSON.stringify(redactArgs(args)).length).toBeLessThan(32_000);
});

test('a text shows that its end is missing, also if the rest is short because a secret was replaced', () => {
  const { note } = redactArgs({ note: `Bearer ${'a1'.repeat(600)} and more` }) as { note: string };
  expect(note).toMatch(/^Bearer .*…$/);
  expect(note.length).toBeLessThan(100);
});
