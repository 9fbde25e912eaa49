/**
 * Approvals that end without a person: by expiry, or by a hook; and the notification of a pending approval.
 */
import { describe, test } from 'vitest';
import { given } from './given.ts';
import {
  approvalExpires,
  approved,
  asked,
  call,
  cancelled,
  denied,
  Failing,
  hook,
  hooksSaid,
  later,
  noticeGiven,
  returned,
  running,
  takenOver,
} from './moves.ts';

const parked = [running({ expireAfterMs: 60_000 }), asked(call('a', 'ask'), call('b', 'ask'))] as const;

describe('an approval that expires', () => {
  test('records its expiry when it is requested, and waits for its timer', () => {
    given(running({ expireAfterMs: 60_000 }))
      .when(asked(call('a', 'ask')))
      .thenEvent('approval_requested', { call_id: 'a', expire_after_ms: 60_000 })
      .thenEffects('timer approval at 60000');
  });

  test('is denied by no person, and the run continues', () => {
    given(...parked, later(60_000))
      .when(approvalExpires('a'))
      .thenJournal('timer_fired approval', 'approval_decided a expired', 'call_ended a denied by expiry')
      .thenEvent('call_ended', { call_id: 'a', status: 'denied', is_error: true })
      .thenState('function_awaiting_approval.parked')
      .when(approvalExpires('b'))
      .thenIncludes('call_ended b denied by expiry', 'loop_checkpoint post_tool_dispatch', 'turn_start 2');
  });

  test('is decided: a later decision is rejected', () => {
    given(...parked, approvalExpires('a'))
      .when(approved('a'))
      .thenJournal('command_rejected already_decided allow-a', 'control_outcome approve already_decided a')
      .thenEvent('command_rejected', { detail: { by: 'expiry', decision: 'deny' } });
  });

  test('does not expire after a decision', () => {
    given(...parked, approved('a'))
      .when(returned('a'))
      .thenNever('approval_decided a expired')
      .thenEffects('timer approval at 60000');
  });

  test('has no timer while the run ends', () => {
    given(...parked)
      .when(cancelled())
      .thenIncludes('approval_decided a aborted', 'approval_decided b aborted')
      .thenNever('timer_fired');
  });

  test('has its full time again in a fork', () => {
    given(...parked, later(50_000), takenOver())
      .when(later(60_000), approvalExpires('a'))
      .thenIncludes('approval_decided a expired')
      .thenEvent('timer_fired', { what: 'approval' });
  });
});

describe('OnApprovalRequested', () => {
  const told = running({ hooks: [hook('OnApprovalRequested')] });

  test('is called while the approval is pending: a person may decide immediately', () => {
    given(told)
      .when(asked(call('a', 'ask')))
      .thenIncludes('approval_requested a', 'hook_call OnApprovalRequested OnApprovalRequested')
      .thenEvent('hook_call', {
        payload: {
          event: 'OnApprovalRequested',
          session: { id: 's1' },
          persona: 'coder',
          turn: 1,
          call_id: 'a',
          requested_by: 'rule:rules[0]',
          tool: { name: 'ask', args: {}, call_id: 'a' },
        },
      })
      .when(approved('a'))
      .thenIncludes('approval_decided a allow', 'call_started a');
  });

  test('may refuse, if no decision was made before', () => {
    given(told, asked(call('a', 'ask')))
      .when(hooksSaid({ deny: 'not at night' }))
      .thenIncludes('announced OnApprovalRequested', 'approval_decided a deny OnApprovalRequested')
      .thenIncludes('call_ended a denied by hook')
      .thenEvent('call_ended', {
        denial: { by: 'hook', hook: 'OnApprovalRequested', reason: 'not at night', args: {} },
      });
    given(told, asked(call('a', 'ask')), approved('a'))
      .when(hooksSaid({ deny: 'not at night' }))
      .thenIncludes('announced OnApprovalRequested')
      .thenNever('approval_decided a deny');
  });

  test('refuses nothing by a failure: a person is asked in any case', () => {
    given(told, asked(call('a', 'ask')))
      .when(hooksSaid(new Failing()))
      .thenState('function_awaiting_approval.parked')
      .when(denied('a'))
      .thenIncludes('call_ended a denied by user');
  });
});

describe('a notification', () => {
  const told = running({ notifies: true });

  test('is an effect of its own until it is sent; then a waiting session has no effects', () => {
    given(told)
      .when(asked(call('a', 'ask')))
      .thenEffects('notify a')
      .when(noticeGiven('a'))
      .thenJournal('approval_notified a delivered')
      .thenEffects()
      .thenState('function_awaiting_approval.parked');
  });

  test('that fails is recorded and changes nothing else', () => {
    given(told, asked(call('a', 'ask')))
      .when(noticeGiven('a', 'failed'))
      .thenJournal('approval_notified a failed')
      .thenState('function_awaiting_approval.parked');
  });

  test('is no longer sent after the decision', () => {
    given(told, asked(call('a', 'ask')))
      .when(approved('a'))
      .thenEffects('call_tool a');
  });
});
