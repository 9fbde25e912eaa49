/** The status of a session, as far as it is shown. */
import type { SessionStatus } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { newerStatus } from '../src/session/use-session.ts';

const status = (n: number, session_id = 's') => ({ session_id, n }) as SessionStatus;

test('a slow answer with an older status does not replace a newer one', () => {
  const newer = status(5);
  expect(newerStatus(newer, status(4))).toBe(newer);
});

test.each([
  ['the first one', null, status(4)],
  ['a newer one', status(4), status(5)],
  // Budgets change without a record.
  ['one of the same record', status(4), status(4)],
  ['one of another session', status(9), status(1, 'other')],
])('%s is shown', (_what, before, answer) => expect(newerStatus(before, answer)).toBe(answer));

test('a query that failed changes nothing', () => {
  const before = status(4);
  expect(newerStatus(before, null)).toBe(before);
});
