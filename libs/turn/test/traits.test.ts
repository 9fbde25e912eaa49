/** What the traits of tools mean for a batch, where other rules meet them. */
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

  test('goes on behind a call that was cancelled', () => {
    given(batch, callCancelled('a'))
      .when(returned('a', 'cancelled'))
      .thenIncludes('call_ended a cancelled', 'loop_checkpoint pre_tool_dispatch', 'call_started b')
      .thenNever('call_started c');
  });

  test('goes on behind a call that a crash interrupted', () => {
    given(batch, owned(2))
      .when(returned('a', 'interrupted'))
      .thenIncludes('call_ended a interrupted', 'loop_checkpoint pre_tool_dispatch', 'call_started b');
  });

  test('passes a call by that was cancelled before its turn', () => {
    given(batch).when(callCancelled('b')).thenIncludes('call_ended b cancelled').thenNever('call_started c');
    given(batch, callCancelled('b')).when(returned('a')).thenIncludes('call_ended a ok', 'call_started c');
  });

  test('waits for a call that was taken up until it comes back', () => {
    given(running(), asked(call('a', 'long'), call('b', 'seq')))
      .when(accepted('a'))
      .thenNever('call_started b')
      .when(broughtBack('a'))
      .thenIncludes('call_ended a ok', 'loop_checkpoint pre_tool_dispatch', 'call_started b');
  });
});

describe('a run ends by termination', () => {
  test('not where a terminating call failed', () => {
    given(running(), asked(call('a', 'done')))
      .when(returned('a', 'error'))
      .thenIncludes('turn_start 2');
  });

  test.each(['cancelled', 'interrupted'] as const)('not where one was %s', (status) => {
    given(running(), asked(call('a', 'done'), call('b', 'done')), returned('a'), callCancelled('b'))
      .when(returned('b', status))
      .thenIncludes('turn_start 2');
  });

  test('not where nothing ran: denied calls do not count', () => {
    given(running({ rules: [{ tool: '*', action: 'ask' }] }), asked(call('a', 'done')))
      .when(denied('a'))
      .thenIncludes('call_ended a denied by user', 'turn_start 2');
  });

  test('where what did not run was denied', () => {
    given(running(), asked(call('a', 'forbidden'), call('b', 'done')))
      .when(returned('b'))
      .thenIncludes('call_ended b ok')
      .thenState('tearing_down.closing_tools');
  });
});
