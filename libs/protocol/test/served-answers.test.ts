/** The bounds of what services answer. */
import { expect, test } from 'vitest';
import { ServedHookAnswer, SHAPED_MESSAGES_MAX } from '../src/mod.ts';

const isValid = (count: number) =>
  ServedHookAnswer.safeParse({ status: 'shaped', messages: Array.from({ length: count }, () => 0) }).success;

test('an answer of a hook has a limited number of messages', () => {
  expect(isValid(SHAPED_MESSAGES_MAX)).toBe(true);
  expect(isValid(SHAPED_MESSAGES_MAX + 1)).toBe(false);
});
