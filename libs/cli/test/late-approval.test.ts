/** The demo's edit where no one answers. */
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
  const said: string[] = [];
  return { approve, said, late: new LateApproval({ approve }, (text) => said.push(text)) };
}

test('is approved once, and the demo says so', () => {
  const { approve, said, late } = waiting();
  late.approvalsOpen([edit]);
  late.approvalsOpen([edit]);
  vi.advanceTimersByTime(APPROVED_AFTER_MS - 1);
  expect(approve).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(approve.mock.calls).toEqual([['c3_1', { actor: 'demo', wait: 'stored' }]]);
  expect(said).toEqual(['no answer came: the demo approves edit_file']);
});

test.each([
  ['decided', { type: 'approval_settled', callId: 'c3_1' }],
  ['left', null],
])('is left alone when it was %s', (_how, event) => {
  const { approve, late } = waiting();
  late.approvalsOpen([edit]);
  if (event === null) late.close();
  else late.saw(event as UiEvent);
  vi.advanceTimersByTime(APPROVED_AFTER_MS);
  expect(approve).not.toHaveBeenCalled();
});
