import { expect, test } from 'vitest';
import { cancellationIn } from '../src/journal/call-cancellation.ts';
import type { SessionEvent } from '../src/journal/events.ts';

const told = { type: 'control_outcome', control: 'cancel_call', command_id: 'mine', target: 'c1_1' } as const;
const read = (...events: object[]) => cancellationIn({ events: events as SessionEvent[] }, 'mine');

test('the outcome of a cancel_call is read from its control_outcome', () => {
  const other = { ...told, command_id: 'other', status: 'not_found' };
  const first = { ...told, status: 'already_cancelled', tool: 'deploy', reason: 'too slow' };
  expect(read(other, first)).toEqual({
    outcome: 'already_cancelled',
    call_id: 'c1_1',
    tool: 'deploy',
    reason: 'too slow',
  });
  expect(read({ ...told, status: 'not_found' })).toEqual({
    outcome: 'not_found',
    call_id: 'c1_1',
    tool: null,
    reason: null,
  });
});

test('a rejected command and another control with the same id have no outcome', () => {
  expect(read({ ...told, status: 'invalid_field' }, { ...told, control: 'cancel', status: 'cancelled' })).toBeNull();
});
