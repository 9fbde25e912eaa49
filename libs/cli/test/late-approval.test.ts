/** The approval in the demo, without an answer. */
import type { UiEvent } from '@coxswain/client';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { APPROVED_AFTER_MS, LateApproval } from '../src/demo/mod.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const edit = { callId: 'c3_1', tool: 'edit_file' };

function waiting() {
  const approve = vi.fn(async (_callId?: string, _options?: object) => ({}) as never);
  const printed: string[] = [];
  return { approve, printed, late: new LateApproval({ approve }, (text) => printed.push(text)) };
}

test('an unanswered approval is approved once, and the demo prints it', () => {
  const { approve, printed, late } = waiting();
  late.approvalsOpen([edit]);
  late.approvalsOpen([edit]);
  vi.advanceTimersByTime(APPROVED_AFTER_MS - 1);
  expect(approve).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(approve.mock.calls).toEqual([['c3_1', { actor: 'demo', wait: 'stored' }]]);
  expect(printed).toEqual(['no answer came: the demo approves edit_file']);
});

test.each([
  ['decided', { type: 'approval_settled', callId: 'c3_1' }],
  ['closed', null],
])('an approval that was %s is not approved', (_how, event) => {
  const { approve, late } = waiting();
  late.approvalsOpen([edit]);
  if (event === null) late.close();
  else late.saw(event as UiEvent);
  vi.advanceTimersByTime(APPROVED_AFTER_MS);
  expect(approve).not.toHaveBeenCalled();
});
