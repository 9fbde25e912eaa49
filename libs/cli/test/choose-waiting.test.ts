import { expect, test } from 'vitest';
import { chooseWaiting, readReplacement } from '../src/line/mod.ts';

const OLDER = '01990000-0000-7000-8000-000000000001';
const NEWER = '01990000-1111-7000-8000-000000000002';
const waiting = [OLDER, NEWER, 'moor'];

test('without an id, the newest queued message is chosen', () => {
  expect(chooseWaiting(undefined, waiting)).toBe('moor');
  expect(readReplacement('the other file', waiting)).toEqual({ commandId: 'moor', text: 'the other file' });
});

test('a message is chosen by its id or a unique prefix of it', () => {
  expect(chooseWaiting(OLDER, waiting)).toBe(OLDER);
  expect(chooseWaiting('01990000-1', waiting)).toBe(NEWER);
  expect(readReplacement('01990000-0 the other\nfile', waiting)).toEqual({ commandId: OLDER, text: 'the other\nfile' });
  expect(readReplacement('moor at the quay', waiting)).toEqual({ commandId: 'moor', text: 'at the quay' });
});

test('an unknown id is left to the session, and an unknown first word to the text', () => {
  expect(chooseWaiting('0198', waiting)).toBe('0198');
  expect(readReplacement('0199 is the year', waiting)).toEqual({ commandId: 'moor', text: '0199 is the year' });
  expect(readReplacement(OLDER, waiting)).toEqual({ commandId: 'moor', text: OLDER });
});

test('an ambiguous prefix is rejected with the matching ids', () => {
  expect(() => chooseWaiting('01990000-', waiting)).toThrow(`matches ${OLDER}, ${NEWER}`);
});

test('without a queued message, both commands are rejected', () => {
  expect(() => chooseWaiting(undefined, [])).toThrow('no message is queued');
  expect(() => readReplacement('x', [])).toThrow('no message is queued');
});
