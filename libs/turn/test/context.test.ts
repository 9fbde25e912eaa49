/**
 * The context as a value: complete copies at low cost.
 */
import { setFlagsFromString } from 'node:v8';
import { expect, test } from 'vitest';
import { contextWith, emptyContext } from '../src/core/context.ts';

test('a changed context has every member of the previous one', () => {
  const before = { ...emptyContext('s1'), turn: 3, prompt: 'go', command_ids: ['a'] };
  expect(contextWith(before, {})).toStrictEqual(before);
  expect(contextWith(before, { turn: 4, model: null })).toStrictEqual({ ...before, turn: 4, model: null });
  expect(before.turn).toBe(3);
});

test('contexts created from one another share one hidden class', () => {
  setFlagsFromString('--allow-natives-syntax');
  const haveSameMap = new Function('a', 'b', 'return %HaveSameMap(a, b)') as (a: object, b: object) => boolean;
  const first = contextWith(emptyContext('s1'), { turn: 1 });
  let last = first;
  for (let turn = 2; turn < 10; turn++) last = contextWith(last, { turn });
  expect(haveSameMap(first, last)).toBe(true);
});
