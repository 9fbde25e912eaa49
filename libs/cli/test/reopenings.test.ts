import { expect, test } from 'vitest';
import { Reopenings } from '../src/instance/mod.ts';

const ended = { hasEnded: true, mayReturn: true, openMs: 1_000 };
const unanswered = { ...ended, hasEnded: false };
const error = Object.assign(new Error('no answer'), { code: 'nats_unreachable' });

test('a task runs again after eight ends of an instance in a row, and fails with a code after the ninth', () => {
  const reopenings = new Reopenings();
  for (let n = 0; n < 8; n++) reopenings.takeError(new Error('gone'), ended);
  expect(() => reopenings.takeError(new Error('gone'), ended)).toThrow(
    expect.objectContaining({ code: 'nats_unreachable', message: expect.stringContaining('9 times in a row') }),
  );
});

test('an instance that ran for a minute starts the count again', () => {
  const reopenings = new Reopenings();
  for (let n = 0; n < 100; n++) reopenings.takeError(new Error('gone'), { ...ended, openMs: n % 8 === 0 ? 60_000 : 0 });
  reopenings.takeError(error, { ...unanswered, openMs: 60_000 });
  reopenings.takeError(error, { ...unanswered, openMs: 60_000 });
});

test('without the end of an instance, a task runs again once, if a cox up does not answer', () => {
  const reopenings = new Reopenings();
  reopenings.takeError(error, unanswered);
  expect(() => reopenings.takeError(error, unanswered)).toThrow(error);
  expect(() => new Reopenings().takeError(error, { ...unanswered, mayReturn: false })).toThrow(error);
  const other = new Error('not found');
  expect(() => new Reopenings().takeError(other, unanswered)).toThrow(other);
});
