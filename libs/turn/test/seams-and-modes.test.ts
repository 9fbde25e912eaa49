/**
 * Delivery of queued messages: each mode at each seam that delivers it, and at no other.
 */
import { SEAM_KINDS, SEAMS } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { given } from './given.ts';
import {
  answered,
  asked,
  call,
  cancelled,
  followedUp,
  hook,
  hooksSaid,
  type Move,
  modelStopped,
  prompted,
  provisioned,
  reminded,
  returned,
  running,
  started,
  steered,
  toolsClosed,
} from './moves.ts';
import { INTERRUPT } from './openings.ts';

const AUDIT = 'audit_only';

describe('iteration_start', () => {
  test.each([INTERRUPT, 'finish_step'])('delivers %s before the model is called', (mode) => {
    given(started(), steered('m', mode))
      .when(provisioned())
      .thenIncludes(
        'turn_start 1',
        'loop_checkpoint iteration_start delivers m',
        'message_injected m steer at iteration_start',
        'loop_checkpoint pre_compact',
      );
  });

  test('does not deliver audit_only', () => {
    given(started(), steered('m', AUDIT))
      .when(provisioned())
      .thenIncludes('loop_checkpoint iteration_start')
      .thenNever('message_injected m');
  });
});

describe('the compaction seams deliver no injection:', () => {
  test.each(['pre_compact', 'post_compact'] as const)('%s drains no mode', (kind) => {
    expect(SEAMS[kind].drains).toEqual([]);
    given(started(), steered('a', AUDIT)).when(provisioned()).thenIncludes(`loop_checkpoint ${kind}`);
  });
});

describe('pre_tool_dispatch', () => {
  test('delivers an interrupt: no call starts, each has one skipped result, then the message follows', () => {
    given(running(), steered('m', INTERRUPT))
      .when(asked(call('a', 'read'), call('b', 'ask')))
      .thenJournal(
        'message_complete asks a b',
        'loop_checkpoint pre_tool_dispatch delivers m skips a b',
        'call_ended a skipped',
        'call_ended b skipped',
        'message_injected m steer at pre_tool_dispatch',
        'turn_end 1 dispatch_skipped',
        'turn_start 2',
        'loop_checkpoint iteration_start',
        'loop_checkpoint pre_compact',
        'loop_checkpoint post_compact',
      )
      .thenNever('call_started')
      .thenCount('call_ended a', 1)
      .thenCount('call_ended b', 1);
  });

  test.each(['finish_step', AUDIT])('does not deliver %s: the calls run', (mode) => {
    given(running(), steered('m', mode))
      .when(asked(call('a', 'read')))
      .thenIncludes('loop_checkpoint pre_tool_dispatch', 'call_started a')
      .thenNever('message_injected m');
  });

  test('has one pass if there is nothing to wait for', () => {
    given(running())
      .when(asked(call('a', 'read'), call('b', 'read')))
      .thenJournal(
        'message_complete asks a b',
        'loop_checkpoint pre_tool_dispatch',
        'call_started a',
        'call_started b',
      );
  });

  test('passes again after hooks, in the record that starts the calls', () => {
    given(running({ hooks: [hook('PreToolUse')] }), asked(call('a', 'read')))
      .when(hooksSaid(undefined))
      .thenJournal(
        'hook_returned PreToolUse PreToolUse a no_objection',
        'consult_ended PreToolUse a',
        'loop_checkpoint pre_tool_dispatch',
        'call_started a',
      );
  });

  test('does not report a skip if there was nothing left to skip', () => {
    const unknown = { problem: { code: 'unknown_tool', message: 'There is no such tool.' } };
    given(running(), steered('m', INTERRUPT))
      .when(asked(call('a', 'nosuch', unknown)))
      .thenIncludes(
        'call_ended a error',
        'loop_checkpoint pre_tool_dispatch delivers m',
        'message_injected m steer at pre_tool_dispatch',
        'loop_checkpoint post_tool_dispatch',
        'turn_end 1',
      );
  });

  test('is not followed by post_tool_dispatch if the whole batch was skipped', () => {
    given(running(), steered('m', INTERRUPT))
      .when(asked(call('a', 'read')))
      .thenNever('loop_checkpoint post_tool_dispatch');
  });

  test('turn_end records the skip and its reason', () => {
    given(running(), steered('m', INTERRUPT))
      .when(asked(call('a', 'read')))
      .thenEvent('turn_end', { dispatch_skipped: true, skip_reason: 'interrupt_immediate' })
      .thenEvent('loop_checkpoint', { dispatch_skipped: true, skipped_call_ids: ['a'] });
  });
});

describe('post_tool_dispatch', () => {
  test.each([INTERRUPT, 'finish_step'])('delivers %s after the results', (mode) => {
    given(running(), asked(call('a', 'read')), steered('m', mode))
      .when(returned('a'))
      .thenIncludes(
        'call_ended a ok',
        'loop_checkpoint post_tool_dispatch delivers m',
        'message_injected m steer at post_tool_dispatch',
        'turn_end 1',
        'turn_start 2',
      );
  });

  test('does not deliver audit_only', () => {
    given(running(), asked(call('a', 'read')), steered('m', AUDIT))
      .when(returned('a'))
      .thenIncludes('loop_checkpoint post_tool_dispatch')
      .thenNever('message_injected m');
  });
});

describe('iteration_end', () => {
  test.each([INTERRUPT, 'finish_step'])('delivers %s and the run takes another turn', (mode) => {
    given(running(), steered('m', mode))
      .when(answered())
      .thenIncludes(
        'loop_checkpoint iteration_end delivers m',
        'message_injected m steer at iteration_end',
        'turn_end 1',
        'turn_start 2',
      )
      .thenState('assistant_streaming.streaming');
  });

  test('does not deliver audit_only: the run ends', () => {
    given(running(), steered('m', AUDIT))
      .when(answered())
      .thenIncludes('loop_checkpoint iteration_end', 'turn_end 1')
      .thenNever('turn_start 2');
  });

  test('is not passed in a turn with calls', () => {
    given(running(), asked(call('a', 'read')))
      .when(returned('a'))
      .thenNever('loop_checkpoint iteration_end');
  });
});

describe('loop_exit', () => {
  test('delivers audit_only into the transcript, for no model', () => {
    given(running(), steered('m', AUDIT))
      .when(answered())
      .thenIncludes('turn_end 1', 'loop_checkpoint loop_exit delivers m', 'message_injected m steer at loop_exit audit')
      .thenEffects('close_tools');
  });

  test.each([INTERRUPT, 'finish_step'])('does not deliver %s: a cancelled run leaves it to the next', (mode) => {
    given(running(), steered('m', mode))
      .when(cancelled(), modelStopped(), toolsClosed)
      .thenIncludes('loop_checkpoint loop_exit', 'agent_end cancelled pending 1')
      .thenNever('message_injected m');
  });

  test('drains all messages of its mode, also with the policy one at a time', () => {
    given(running({ steering: 'one_at_a_time' }), steered('m1', AUDIT), reminded('m2', AUDIT))
      .when(answered())
      .thenIncludes('loop_checkpoint loop_exit delivers m1 m2');
  });
});

describe('daemon_idle_pre and daemon_idle_post', () => {
  const idle: Move = [running({ daemon: true }), answered()];

  test('precede and follow the wait, with iteration 0', () => {
    given(running({ daemon: true }))
      .when(answered())
      .thenIncludes('turn_end 1', 'loop_checkpoint daemon_idle_pre')
      .thenEvent('loop_checkpoint', { kind: 'daemon_idle_pre', iteration: 0 })
      .thenState('daemon_idle.waiting')
      .when(steered('m', INTERRUPT))
      .thenEvent('loop_checkpoint', { kind: 'daemon_idle_post', iteration: 0 });
  });

  test('daemon_idle_post delivers an interrupt', () => {
    given(idle)
      .when(steered('m', INTERRUPT))
      .thenIncludes(
        'loop_checkpoint daemon_idle_post delivers m',
        'message_injected m steer at daemon_idle_post',
        'turn_start 2',
      );
  });

  test('daemon_idle_post leaves finish_step to the next turn', () => {
    given(idle)
      .when(steered('m'))
      .thenIncludes('loop_checkpoint daemon_idle_post', 'turn_start 2', 'loop_checkpoint iteration_start delivers m');
  });

  test('audit_only does not wake', () => {
    given(idle)
      .when(steered('m', AUDIT))
      .thenJournal('steering_received m audit_only')
      .thenState('daemon_idle.waiting')
      .when(reminded('r', AUDIT))
      .thenState('daemon_idle.waiting');
  });
});

test('each seam of the catalogue has tests above', () => {
  expect([...SEAM_KINDS]).toEqual([
    'iteration_start',
    'pre_compact',
    'post_compact',
    'pre_tool_dispatch',
    'iteration_end',
    'post_tool_dispatch',
    'daemon_idle_pre',
    'daemon_idle_post',
    'loop_exit',
  ]);
});

describe('a queue', () => {
  test('is first in, first out, steers and reminders together', () => {
    given(running(), steered('m1'), reminded('m2'), steered('m3'))
      .when(answered())
      .thenIncludes(
        'loop_checkpoint iteration_end delivers m1 m2 m3',
        'message_injected m1 steer at iteration_end',
        'reminder_fired m2 at iteration_end',
        'message_injected m3 steer at iteration_end',
      );
  });

  test('is drained one at a time by policy', () => {
    given(running({ steering: 'one_at_a_time' }), steered('m1'), steered('m2'))
      .when(answered())
      .thenIncludes('loop_checkpoint iteration_end delivers m1', 'loop_checkpoint iteration_start')
      .when(answered())
      .thenIncludes('loop_checkpoint iteration_end delivers m2');
  });

  test('delivers an interrupt at its seam although others precede it', () => {
    given(running(), steered('m1'), steered('m2', INTERRUPT))
      .when(asked(call('a', 'read')))
      .thenIncludes(
        'loop_checkpoint pre_tool_dispatch delivers m2 skips a',
        'loop_checkpoint iteration_start delivers m1',
      );
  });
});

describe('a delivered message', () => {
  test('of a steer is a user message, verbatim', () => {
    given(running(), steered('m'))
      .when(answered())
      .thenEvent('message_injected', { message: { role: 'user', content: [{ type: 'text', text: 'do m' }] } });
  });

  test('of a reminder is a reminder, never a user message', () => {
    given(running(), reminded('m'))
      .when(answered())
      .thenEvent('reminder_fired', { message: { role: 'reminder', content: [{ type: 'text', text: 'mind m' }] } })
      .thenNever('message_injected');
  });

  test('of a reminder that interrupts skips calls as a steer does', () => {
    given(running(), reminded('m', INTERRUPT))
      .when(asked(call('a', 'read')))
      .thenIncludes('loop_checkpoint pre_tool_dispatch delivers m skips a', 'call_ended a skipped')
      .thenNever('call_started');
  });
});

describe('a steer between the last seam and the end', () => {
  test('is reported as pending, and delivered in the next run', () => {
    given(running(), answered())
      .when(steered('m'), toolsClosed)
      .thenIncludes('steering_received m finish_step', 'agent_end end_turn pending 1')
      .when(prompted(), provisioned())
      .thenIncludes('agent_start run 2', 'loop_checkpoint iteration_start delivers m');
  });

  test('with audit_only waits for the next loop_exit', () => {
    given(running(), answered())
      .when(steered('m', AUDIT), toolsClosed, prompted(), provisioned(), answered())
      .thenIncludes('agent_end end_turn pending 1', 'loop_checkpoint loop_exit delivers m');
  });
});

test('a message to an ended session waits for its next run', () => {
  given(running(), answered(), toolsClosed)
    .when(steered('m', INTERRUPT), reminded('r'), followedUp('f'))
    .thenJournal('steering_received m interrupt_immediate', 'reminder_injected r finish_step', 'followup_received f')
    .thenState('stopped')
    .when(prompted(), provisioned())
    .thenIncludes('loop_checkpoint iteration_start delivers m r')
    .when(answered())
    .thenIncludes('message_injected f followup at steering_check');
});
