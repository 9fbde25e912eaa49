/**
 * A call with an unknown outcome after a crash: `interrupted` for the model, or a question for a person, as the persona
 * configures.
 */
import { describe, test } from 'vitest';
import { given } from './given.ts';
import {
  approved,
  asked,
  call,
  callCancelled,
  cancelled,
  denied,
  hook,
  hooksSaid,
  type Move,
  owned,
  preempted,
  returned,
  running,
  steered,
} from './moves.ts';

const ASKS = { onUnknownOutcome: 'ask' } as const;
/** One call ran when its host crashed; the next host found no record of its outcome. */
const inDoubt: Move = [running(ASKS), asked(call('a', 'read')), owned(2), returned('a', 'interrupted')];

describe('a call in doubt', () => {
  test('is interrupted by default', () => {
    given(running(), asked(call('a', 'read')), owned(2))
      .when(returned('a', 'interrupted'))
      .thenIncludes('call_ended a interrupted')
      .thenNever('approval_requested a');
  });

  test('needs a person’s decision if the persona says so, with the question', () => {
    given(running(ASKS), asked(call('a', 'read')), owned(2))
      .when(returned('a', 'interrupted'))
      .thenJournal('approval_requested a')
      .thenState('function_awaiting_approval.parked')
      .thenEffects()
      .thenEvent('approval_requested', { call_id: 'a', requested_by: 'unknown_outcome' });
  });

  test('runs again if that is allowed, as a new request, through its own pass of the stop seam', () => {
    given(inDoubt)
      .when(approved('a'))
      .thenJournal(
        'approval_decided a allow',
        'control_outcome approve allowed a',
        'loop_checkpoint pre_tool_dispatch',
        'call_started a',
      )
      .thenEffects('call_tool a')
      .when(returned('a'))
      .thenIncludes('call_ended a ok');
  });

  test('runs again with other arguments if the person edits them', () => {
    given(inDoubt)
      .when(approved('a', { args: { path: 'elsewhere' } }))
      .thenEvent('call_started', { call_id: 'a', args: { path: 'elsewhere' } });
  });

  test('is interrupted if that is denied, and the run continues', () => {
    given(inDoubt)
      .when(denied('a', { reason: 'it may be there already' }))
      .thenIncludes('approval_decided a deny', 'call_ended a interrupted', 'loop_checkpoint post_tool_dispatch')
      .thenEffects('call_model')
      .thenCount('call_started a', 1);
  });

  test('needs a decision again after the next crash, whatever was decided before', () => {
    given(inDoubt, approved('a'), owned(3))
      .when(returned('a', 'interrupted'))
      .thenJournal('approval_requested a')
      .when(denied('a'))
      .thenIncludes('call_ended a interrupted');
  });

  test('needs a decision of a person, also if a hook denies its first request late', () => {
    const around = { ...ASKS, hooks: [hook('OnApprovalRequested', 'risk')] };
    given(running(around), asked(call('a', 'ask')), approved('a'), owned(2), returned('a', 'interrupted'))
      .when(hooksSaid({ deny: 'too late' }))
      .thenNever('approval_decided a deny')
      .thenState('function_awaiting_approval.parked');
  });

  test('needs a decision also if a person had allowed its first request', () => {
    given(running(ASKS), asked(call('a', 'ask')), approved('a', {}, 'allow-1'), owned(2))
      .when(returned('a', 'interrupted'))
      .thenJournal('approval_requested a')
      .when(approved('a', {}, 'allow-2'))
      .thenIncludes('call_started a');
  });
});

describe('while it is pending', () => {
  test('an interrupt ends it as interrupted, not as skipped: its outcome is unknown', () => {
    given(inDoubt)
      .when(steered('s', 'interrupt_immediate'))
      .thenIncludes(
        'approval_decided a superseded',
        'call_ended a interrupted',
        'message_injected s steer at pre_tool_dispatch',
      )
      .when(approved('a'))
      .thenRejected('not_pending');
  });

  test('an earlier interrupt ends it without a question', () => {
    given(running(ASKS), asked(call('a', 'read')), owned(2), steered('s', 'interrupt_immediate'))
      .when(returned('a', 'interrupted'))
      .thenIncludes('call_ended a interrupted', 'message_injected s steer at post_tool_dispatch')
      .thenNever('approval_requested a');
  });

  test('a preempting interrupt prevents the question', () => {
    given(running(ASKS), asked(call('a', 'read')), owned(2), preempted('s'))
      .when(returned('a', 'interrupted'))
      .thenNever('approval_requested a')
      .thenIncludes('call_ended a interrupted');
  });

  test('cancelling the run ends it as interrupted', () => {
    given(inDoubt).when(cancelled()).thenIncludes('approval_decided a aborted', 'call_ended a interrupted');
  });

  test('cancelling the call ends it as cancelled', () => {
    given(inDoubt).when(callCancelled('a')).thenIncludes('approval_decided a superseded', 'call_ended a cancelled');
  });

  test('others of its batch continue', () => {
    given(running(ASKS), asked(call('a', 'read'), call('b', 'read')), owned(2), returned('a', 'interrupted'))
      .when(returned('b'))
      .thenIncludes('call_ended b ok')
      .thenState('function_awaiting_approval.parked')
      .when(denied('a'))
      .thenIncludes('call_ended a interrupted', 'loop_checkpoint post_tool_dispatch');
  });

  test('a call beyond the parallel limit takes its place', () => {
    given(running({ ...ASKS, parallelCalls: 1 }), asked(call('a', 'read'), call('b', 'read')), owned(2))
      .when(returned('a', 'interrupted'))
      .thenJournal('approval_requested a', 'loop_checkpoint pre_tool_dispatch', 'call_started b');
  });

  test('a sequential batch waits for it', () => {
    given(running(ASKS), asked(call('a', 'seq'), call('b', 'read')), owned(2))
      .when(returned('a', 'interrupted'))
      .thenJournal('approval_requested a')
      .when(denied('a'))
      .thenIncludes('call_ended a interrupted', 'call_started b');
  });
});

describe('while a seam waits for announcements', () => {
  const ids = Array.from({ length: 37 }, (_, i) => `c${i}`);
  const batch = asked(...ids.map((id) => call(id, 'read')));
  const hooks = [hook('permission_replied', 'slow')];
  const seamWaits: Move = [running({ ...ASKS, parallelCalls: 36, hooks }), batch, owned(2)];

  test('in function_awaiting_approval, another call in doubt needs a decision, too', () => {
    given(seamWaits, returned('c0', 'interrupted'))
      .when(returned('c1', 'interrupted'))
      .thenJournal('approval_requested c1')
      .thenState('function_awaiting_approval.pre_tool_dispatch');
  });

  test('in function_execute, a call in doubt needs a decision', () => {
    given(seamWaits, returned('c0'))
      .when(returned('c1', 'interrupted'))
      .thenJournal('approval_requested c1')
      .thenState('function_awaiting_approval.pre_tool_dispatch');
  });
});

test('a run that is being cancelled asks no person', () => {
  given(running(ASKS), asked(call('a', 'read')), owned(2), cancelled())
    .when(returned('a', 'interrupted'))
    .thenNever('approval_requested a')
    .thenIncludes('call_ended a interrupted');
});
