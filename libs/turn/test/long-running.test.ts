/**
 * Calls of `long_running` tools: accepted by a worker, with an outcome as a durable command.
 */
import { describe, test } from 'vitest';
import { given } from './given.ts';
import {
  accepted,
  asked,
  broughtBack,
  call,
  callCancelled,
  cancelled,
  hook,
  type Move,
  owned,
  preempted,
  returned,
  running,
  steered,
} from './moves.ts';

/** A call that a worker has accepted. */
const takenUp: Move = [running(), asked(call('a', 'long')), accepted('a')];

describe('an accepted call', () => {
  test('stays open without an effect of the host', () => {
    given(running(), asked(call('a', 'long')))
      .when(accepted('a'))
      .thenJournal('call_accepted a')
      .thenState('function_execute.running')
      .thenEffects();
  });

  test('is neither sent again nor ended by a change of hosts', () => {
    given(takenUp).when(owned(2)).thenEffects().thenNever('call_ended a').thenCount('call_started a', 1);
  });

  test('ends with the outcome in a command', () => {
    given(takenUp)
      .when(broughtBack('a'))
      .thenIncludes('call_ended a ok', 'loop_checkpoint post_tool_dispatch')
      .thenEvent('call_ended', { command_id: 'back-a' });
  });

  test('ends with it also on another host: the epoch of the request counts', () => {
    given(takenUp, owned(2)).when(broughtBack('a')).thenIncludes('call_ended a ok');
  });

  test('may end before its acceptance is known', () => {
    given(running(), asked(call('a', 'long')))
      .when(broughtBack('a'))
      .thenIncludes('call_ended a ok')
      .thenEffects('call_model');
  });

  test('is checked by PostToolUse hooks when its outcome arrives', () => {
    given(running({ hooks: [hook('PostToolUse')] }), asked(call('a', 'long')), accepted('a'))
      .when(broughtBack('a'))
      .thenIncludes('call_returned a ok')
      .thenEffects('consult PostToolUse a');
  });

  test('is accepted once: a second acceptance changes nothing', () => {
    given(takenUp)
      .when((state) => ({ type: 'call_accepted', effect_id: '3-0', call_id: 'a', epoch: state.context.epoch }))
      .thenNothing();
  });
});

describe('an outcome in a command', () => {
  test('repeated under one id changes nothing the second time', () => {
    given(takenUp, broughtBack('a')).when(broughtBack('a')).thenNothing();
  });

  test('under another id is rejected the second time', () => {
    given(takenUp, broughtBack('a', 'one')).when(broughtBack('a', 'two')).thenRejected('call_not_open');
  });

  test.each([
    ['of a call that nobody asked for', { call_id: 'z' }],
    ['of another effect', { effect_id: '9-9' }],
  ])('%s is rejected', (_what, more) => {
    given(takenUp)
      .when(broughtBack('a', 'back', more))
      .thenRejected('call_not_open')
      .thenNever('call_ended a');
  });

  test('of a tool that replies directly is rejected', () => {
    given(running(), asked(call('a', 'read')))
      .when(broughtBack('a'))
      .thenRejected('call_not_open');
  });

  test.each([1, 3, 4])('with epoch %i is rejected if the call was sent with 2', (epoch) => {
    given(running(), asked(call('a', 'long')), owned(2), accepted('a'), owned(3))
      .when(broughtBack('a', 'back', { epoch }))
      .thenRejected('stale_epoch')
      .when(broughtBack('a', 'again', { epoch: 2 }))
      .thenIncludes('call_ended a ok');
  });

  test('is accepted with the epoch of any owner since the call started, while the sender’s epoch is unknown', () => {
    const asSent = (epoch: number) =>
      given(running(), asked(call('a', 'long')), owned(2), owned(3)).when(broughtBack('a', 'back', { epoch }));
    asSent(4).thenRejected('stale_epoch');
    for (const epoch of [1, 2, 3]) asSent(epoch).thenIncludes('call_ended a ok');
  });

  test('after the call was cancelled is rejected, and only the rejection is recorded', () => {
    given(takenUp, callCancelled('a', { timeout_ms: 10 }), returned('a', 'cancelled', { timed_out: true }))
      .when(broughtBack('a', 'late', { effect_id: '3-0' }))
      .thenRejected('call_not_open');
  });
});

describe('a stop', () => {
  test('by a cancel of the call notifies the worker, and waits for the outcome', () => {
    given(takenUp)
      .when(callCancelled('a'))
      .thenEffects('stop_call a')
      .when(broughtBack('a', 'back', { status: 'cancelled' }))
      .thenIncludes('call_ended a cancelled', 'control_outcome cancel_call cancelled a')
      .thenEffects('call_model');
  });

  test('by a cancel of the run does so too', () => {
    given(takenUp)
      .when(cancelled())
      .thenEffects('stop_call a')
      .when(returned('a', 'cancelled', { timed_out: true }))
      .thenIncludes('call_ended a cancelled timed_out');
  });

  test('by an interrupt needs preempt', () => {
    given(takenUp).when(preempted('s')).thenEffects('stop_call a');
    given(takenUp).when(steered('s', 'interrupt_immediate')).thenEffects();
  });

  test('continues after a change of hosts', () => {
    given(takenUp, callCancelled('a')).when(owned(2)).thenEffects('stop_call a');
  });
});
