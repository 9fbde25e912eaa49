/**
 * The stop seam: an interrupt before a call starts stops it, whatever the turn waits for.
 */
import { describe, test } from 'vitest';
import { given } from './given.ts';
import {
  approved,
  asked,
  call,
  callCancelled,
  hook,
  hooksSaid,
  type Move,
  returned,
  running,
  steered,
} from './moves.ts';

const interrupt = steered('m', 'interrupt_immediate');

describe('an interrupt that arrives', () => {
  test('while the model answers stops every call of the answer', () => {
    given(running(), interrupt)
      .when(asked(call('a', 'read'), call('b', 'ask'), call('c', 'forbidden')))
      .thenIncludes('loop_checkpoint pre_tool_dispatch delivers m skips a b c')
      .thenNever('call_started', 'approval_requested')
      .thenCount('call_ended', 3);
  });

  test('during PreToolUse hooks stops the calls after the hooks', () => {
    given(running({ hooks: [hook('PreToolUse')] }), asked(call('a', 'read'), call('b', 'read')), interrupt)
      .when(hooksSaid(undefined), hooksSaid(undefined))
      .thenIncludes('loop_checkpoint pre_tool_dispatch delivers m skips a b', 'turn_end 1 dispatch_skipped')
      .thenNever('call_started', 'loop_checkpoint post_tool_dispatch');
  });

  test('during the gate stops the calls that the gate allows', () => {
    given(running({ hooks: [hook('gate_tool_calls')] }), asked(call('a', 'read'), call('b', 'read')), interrupt)
      .when(hooksSaid([{ allow: true }, { allow: false }]))
      .thenIncludes(
        'call_ended b denied by hook',
        'loop_checkpoint pre_tool_dispatch delivers m skips a',
        'call_ended a skipped',
        'loop_checkpoint post_tool_dispatch',
      )
      .thenNever('call_started');
  });

  test('during permission_asked stops the call that the hook allows', () => {
    given(running({ hooks: [hook('permission_asked')] }), asked(call('a', 'ask')), interrupt)
      .when(hooksSaid({ decision: 'allow' }))
      .thenIncludes('loop_checkpoint pre_tool_dispatch delivers m skips a')
      .thenNever('call_started', 'approval_requested');
  });

  test('at the moment of an approval is too late for the approved call, which is running, and stops the others', () => {
    given(running(), asked(call('a', 'ask'), call('b', 'ask')), approved('a'))
      .when(interrupt)
      .thenIncludes('loop_checkpoint pre_tool_dispatch delivers m skips b')
      .thenEffects('call_tool a');
  });

  test('between two groups of calls stops the second group', () => {
    given(running({ parallelCalls: 1 }), asked(call('a', 'read'), call('b', 'read')), interrupt)
      .when(returned('a'))
      .thenIncludes('call_ended a ok', 'loop_checkpoint pre_tool_dispatch delivers m skips b', 'call_ended b skipped');
  });

  test('while all calls run is delivered after their results', () => {
    given(running(), asked(call('a', 'read'), call('b', 'read')), interrupt, returned('a'))
      .when(returned('b'))
      .thenIncludes('call_ended b ok', 'loop_checkpoint post_tool_dispatch delivers m')
      .thenNever('turn_end 1 dispatch_skipped');
  });
});

describe('exactly one seam has dispatch_skipped', () => {
  const withHooks: Move = running({ hooks: [hook('PreToolUse'), hook('post_turn')] });

  test('for any number of passes', () => {
    const outcome = given(withHooks, asked(call('a', 'read')), interrupt).when(
      hooksSaid(undefined),
      hooksSaid(undefined),
    );
    outcome.thenCount('loop_checkpoint pre_tool_dispatch delivers m skips', 1).thenCount('call_ended a', 1);
    outcome.thenIncludes(
      'loop_checkpoint pre_tool_dispatch delivers m skips a',
      'call_ended a skipped',
      'message_injected m steer at pre_tool_dispatch',
      'hook_call post_turn post_turn',
      'turn_end 1 dispatch_skipped',
    );
  });
});

test('a steer that arrives while a cancelled tool stops is delivered in the next turn', () => {
  given(running(), asked(call('a', 'read')), callCancelled('a'), steered('s'))
    .when(returned('a', 'cancelled'))
    .thenIncludes(
      'call_ended a cancelled',
      'loop_checkpoint post_tool_dispatch delivers s',
      'message_injected s steer at post_tool_dispatch',
      'turn_start 2',
    );
});
