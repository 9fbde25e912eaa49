/**
 * Calls that wait for a human approval: which calls run meanwhile, what a decision does, and which decisions are too
 * late.
 */
import { describe, test } from 'vitest';
import { given } from './given.ts';
import {
  answered,
  approved,
  asked,
  call,
  callCancelled,
  cancelled,
  denied,
  type Move,
  returned,
  running,
  steered,
  toolsClosed,
} from './moves.ts';

/** A batch of three: the middle call needs no approval. */
const three: Move = [running(), asked(call('a', 'ask'), call('b', 'read'), call('c', 'ask'))];

describe('a batch of three in which the middle call needs no approval', () => {
  test('parks two and starts the middle one immediately', () => {
    given(running())
      .when(asked(call('a', 'ask'), call('b', 'read'), call('c', 'ask')))
      .thenJournal(
        'message_complete asks a b c',
        'loop_checkpoint pre_tool_dispatch',
        'approval_requested a',
        'approval_requested c',
        'call_started b',
      )
      .thenState('function_awaiting_approval.parked')
      .thenEffects('call_tool b')
      .thenEvent('approval_requested', { call_id: 'a', requested_by: 'rule:rules[0]' });
  });

  test('starts each allowed call immediately, through its own pass of pre_tool_dispatch', () => {
    given(three)
      .when(approved('a'))
      .thenJournal(
        'approval_decided a allow',
        'control_outcome approve allowed a',
        'loop_checkpoint pre_tool_dispatch',
        'call_started a',
      )
      .thenState('function_awaiting_approval.parked')
      .thenEffects('call_tool a', 'call_tool b')
      .when(approved('c'))
      .thenJournal(
        'approval_decided c allow',
        'control_outcome approve allowed c',
        'loop_checkpoint pre_tool_dispatch',
        'call_started c',
      )
      .thenState('function_execute.running');
  });

  test('may be decided in reverse order', () => {
    given(three)
      .when(approved('c'))
      .thenJournal(
        'approval_decided c allow',
        'control_outcome approve allowed c',
        'loop_checkpoint pre_tool_dispatch',
        'call_started c',
      )
      .when(denied('a'))
      .thenJournal('approval_decided a deny', 'control_outcome approve denied a', 'call_ended a denied by user')
      .thenState('function_execute.running');
  });

  test('may have all results before its last decision', () => {
    given(three, returned('b'), denied('a'))
      .when(denied('c'))
      .thenIncludes('call_ended c denied by user', 'loop_checkpoint post_tool_dispatch', 'turn_start 2');
  });

  test('ends with one result per call, then the model continues', () => {
    given(three, approved('a'), approved('c'), returned('c'), returned('b'))
      .when(returned('a'))
      .thenIncludes('call_ended a ok', 'loop_checkpoint post_tool_dispatch', 'turn_end 1')
      .thenCount('call_ended', 3)
      .thenCount('call_started', 3);
  });
});

describe('a decision', () => {
  test('repeated under the same id changes nothing', () => {
    given(three, approved('a')).when(approved('a')).thenNothing('repeated command');
  });

  test('repeated under another id is rejected with the first decider', () => {
    given(three, approved('a'))
      .when(denied('a'))
      .thenJournal('command_rejected already_decided deny-a', 'control_outcome approve already_decided a')
      .thenEvent('command_rejected', { field: 'call_id', detail: { by: 'ada', decision: 'allow' } });
    given(three, denied('a'))
      .when(approved('a'))
      .thenJournal('command_rejected already_decided allow-a', 'control_outcome approve already_decided a')
      .thenNever('call_started a');
  });

  test('on a call that needs no approval is not_pending', () => {
    given(three)
      .when(approved('b'))
      .thenJournal('command_rejected not_pending allow-b', 'control_outcome approve not_pending b');
    given(three, returned('b'))
      .when(denied('b'))
      .thenJournal('command_rejected not_pending deny-b', 'control_outcome approve not_pending b');
  });

  test('on a call outside the open batch is call_unknown', () => {
    given(three)
      .when(approved('z'))
      .thenJournal('command_rejected call_unknown allow-z', 'control_outcome approve call_unknown z');
  });

  test('after the run has ended is not_pending', () => {
    given(three, denied('a'), denied('c'), returned('b'), answered(), toolsClosed)
      .when(approved('a'))
      .thenJournal('command_rejected not_pending allow-a', 'control_outcome approve not_pending a');
  });

  test('to deny records the decider and the reason, for the model and the journal', () => {
    given(three)
      .when(denied('a', { reason: 'too risky' }))
      .thenEvent('call_ended', {
        call_id: 'a',
        status: 'denied',
        is_error: true,
        denial: { by: 'user', actor: { name: 'bob', verified: false }, reason: 'too risky', args: {} },
      })
      .thenNever('call_started a');
  });

  test('may edit the arguments: the approved arguments run', () => {
    given(three)
      .when(approved('a', { args: { path: 'elsewhere' } }))
      .thenIncludes('approval_decided a allow edited', 'call_started a')
      .thenEvent('call_started', { call_id: 'a', args: { path: 'elsewhere' } });
  });
});

describe('an interrupt while calls are parked', () => {
  test('is delivered immediately: parked calls are superseded and skipped, running siblings finish first', () => {
    given(three)
      .when(steered('m', 'interrupt_immediate'))
      .thenJournal(
        'steering_received m interrupt_immediate',
        'loop_checkpoint pre_tool_dispatch delivers m skips a c',
        'approval_decided a superseded',
        'call_ended a skipped',
        'approval_decided c superseded',
        'call_ended c skipped',
        'message_injected m steer at pre_tool_dispatch',
      )
      .thenState('function_execute.running')
      .thenEffects('call_tool b')
      .when(returned('b'))
      .thenIncludes('call_ended b ok', 'loop_checkpoint post_tool_dispatch', 'turn_end 1 dispatch_skipped');
  });

  test('makes a late decision not_pending', () => {
    given(three, steered('m', 'interrupt_immediate'))
      .when(approved('a'))
      .thenJournal('command_rejected not_pending allow-a', 'control_outcome approve not_pending a')
      .thenNever('call_started a');
  });

  test('ends the turn if no call has run', () => {
    given(running(), asked(call('a', 'ask')))
      .when(steered('m', 'interrupt_immediate'))
      .thenIncludes('call_ended a skipped', 'turn_end 1 dispatch_skipped', 'turn_start 2')
      .thenNever('loop_checkpoint post_tool_dispatch');
  });

  test('continues with post_tool_dispatch if a call has run', () => {
    given(three, returned('b'))
      .when(steered('m', 'interrupt_immediate'))
      .thenIncludes('call_ended c skipped', 'loop_checkpoint post_tool_dispatch', 'turn_end 1 dispatch_skipped');
  });

  test.each(['finish_step', 'audit_only'])('differs from %s, which waits', (mode) => {
    given(three)
      .when(steered('m', mode))
      .thenJournal(`steering_received m ${mode}`)
      .thenState('function_awaiting_approval.parked');
  });

  test('does not affect decided calls that have started', () => {
    given(three, approved('a'))
      .when(steered('m', 'interrupt_immediate'))
      .thenIncludes('loop_checkpoint pre_tool_dispatch delivers m skips c')
      .thenEffects('call_tool a', 'call_tool b');
  });
});

describe('an allowed call beyond the limit of parallel calls', () => {
  const crowded: Move = [
    running({ parallelCalls: 1 }),
    asked(call('a', 'read'), call('b', 'ask'), call('c', 'ask')),
    approved('b'),
  ];

  test('starts when another call ends', () => {
    given(crowded)
      .when(returned('a'))
      .thenJournal('call_ended a ok', 'loop_checkpoint pre_tool_dispatch', 'call_started b');
  });

  test('is stopped by an interrupt while others are still parked', () => {
    given(crowded)
      .when(steered('m', 'interrupt_immediate'))
      .thenIncludes('loop_checkpoint pre_tool_dispatch delivers m skips b c', 'call_ended b skipped')
      .thenNever('call_started b');
  });

  test('is stopped by an interrupt directly after the last decision', () => {
    given(crowded, approved('c'), steered('m', 'interrupt_immediate'))
      .when(returned('a'))
      .thenJournal(
        'call_ended a ok',
        'loop_checkpoint pre_tool_dispatch delivers m skips b c',
        'call_ended b skipped',
        'call_ended c skipped',
        'message_injected m steer at pre_tool_dispatch',
        'loop_checkpoint post_tool_dispatch',
        'turn_end 1 dispatch_skipped',
        'turn_start 2',
        'loop_checkpoint iteration_start',
        'loop_checkpoint pre_compact',
        'loop_checkpoint post_compact',
      )
      .thenNever('call_started b', 'call_started c');
  });
});

describe('in a sequential batch', () => {
  const sequence: Move = [running(), asked(call('a', 'ask'), call('b', 'seq'), call('c', 'ask'))];

  test('a parked call delays the later ones', () => {
    given(sequence).when(approved('c')).thenIncludes('approval_decided c allow').thenNever('call_started');
  });

  test('a denial lets the next one start, through its pass of pre_tool_dispatch', () => {
    given(sequence)
      .when(denied('a'))
      .thenJournal(
        'approval_decided a deny',
        'control_outcome approve denied a',
        'loop_checkpoint pre_tool_dispatch',
        'call_ended a denied by user',
        'call_started b',
      );
  });

  test('so does a denial that is the last decision', () => {
    given(sequence, approved('c'))
      .when(denied('a'))
      .thenJournal(
        'approval_decided a deny',
        'control_outcome approve denied a',
        'loop_checkpoint pre_tool_dispatch',
        'call_ended a denied by user',
        'call_started b',
      )
      .when(returned('b'))
      .thenJournal('call_ended b ok', 'loop_checkpoint pre_tool_dispatch', 'call_started c');
  });

  test('so does the cancellation of the parked call', () => {
    given(sequence)
      .when(callCancelled('a', { inject_reminder: false }))
      .thenJournal(
        'approval_decided a superseded',
        'call_ended a cancelled',
        'control_outcome cancel_call cancelled a',
        'loop_checkpoint pre_tool_dispatch',
        'call_started b',
      );
  });
});

describe('cancelling the run while calls are parked', () => {
  test('aborts the approvals, and a late allow cannot revive them', () => {
    given(three)
      .when(cancelled())
      .thenJournal(
        'control_outcome cancel cancelled',
        'approval_decided a aborted',
        'call_ended a aborted',
        'approval_decided c aborted',
        'call_ended c aborted',
      )
      .thenEffects('call_tool b aborted')
      .when(approved('a'))
      .thenJournal('command_rejected not_pending allow-a', 'control_outcome approve not_pending a')
      .when(returned('b', 'cancelled'), toolsClosed)
      .thenIncludes('call_ended b cancelled', 'agent_end cancelled')
      .thenNever('call_started a', 'call_started c');
  });
});
