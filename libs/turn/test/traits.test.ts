/**
 * The effects of tool traits on a batch, in combination with other rules.
 */
import { describe, test } from 'vitest';
import { given } from './given.ts';
import {
  accepted,
  asked,
  broughtBack,
  call,
  callCancelled,
  denied,
  type Move,
  owned,
  returned,
  running,
} from './moves.ts';

describe('a sequential batch', () => {
  const batch: Move = [running(), asked(call('a', 'read'), call('b', 'seq'), call('c', 'read'))];

  test('continues after a cancelled call', () => {
    given(batch, callCancelled('a'))
      .when(returned('a', 'cancelled'))
      .thenIncludes('call_ended a cancelled', 'loop_checkpoint pre_tool_dispatch', 'call_started b')
      .thenNever('call_started c');
  });

  test('continues after a call that a crash interrupted', () => {
    given(batch, owned(2))
      .when(returned('a', 'interrupted'))
      .thenIncludes('call_ended a interrupted', 'loop_checkpoint pre_tool_dispatch', 'call_started b');
  });

  test('skips a call that was cancelled before its turn', () => {
    given(batch).when(callCancelled('b')).thenIncludes('call_ended b cancelled').thenNever('call_started c');
    given(batch, callCancelled('b')).when(returned('a')).thenIncludes('call_ended a ok', 'call_started c');
  });

  test('waits for an accepted call until its outcome arrives', () => {
    given(running(), asked(call('a', 'long'), call('b', 'seq')))
      .when(accepted('a'))
      .thenNever('call_started b')
      .when(broughtBack('a'))
      .thenIncludes('call_ended a ok', 'loop_checkpoint pre_tool_dispatch', 'call_started b');
  });
});

describe('a run ends by a terminating tool', () => {
  test('but not if a terminating call failed', () => {
    given(running(), asked(call('a', 'done')))
      .when(returned('a', 'error'))
      .thenIncludes('turn_start 2');
  });

  test.each(['cancelled', 'interrupted'] as const)('but not if one was %s', (status) => {
    given(running(), asked(call('a', 'done'), call('b', 'done')), returned('a'), callCancelled('b'))
      .when(returned('b', status))
      .thenIncludes('turn_start 2');
  });

  test('but not if no call ran: denied calls do not count', () => {
    given(running({ rules: [{ tool: '*', action: 'ask' }] }), asked(call('a', 'done')))
      .when(denied('a'))
      .thenIncludes('call_ended a denied by user', 'turn_start 2');
  });

  test('also if the calls that did not run were denied', () => {
    given(running(), asked(call('a', 'forbidden'), call('b', 'done')))
      .when(returned('b'))
      .thenIncludes('call_ended b ok')
      .thenState('tearing_down.closing_tools');
  });
});
