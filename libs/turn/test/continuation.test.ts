/**
 * When a run continues, and when it ends: calls, steering, follow-ups, the maximum of turns, and terminating tools.
 */
import { describe, test } from 'vitest';
import { given } from './given.ts';
import {
  answered,
  approved,
  asked,
  call,
  cancelled,
  denied,
  followedUp,
  type Move,
  modelFailed,
  prompted,
  provisioned,
  returned,
  running,
  steered,
  toolsClosed,
} from './moves.ts';

describe('a run continues', () => {
  test('after calls: the next prompt contains their results', () => {
    given(running(), asked(call('a', 'read')))
      .when(returned('a'))
      .thenIncludes('turn_end 1', 'turn_start 2')
      .thenEffects('call_model');
  });

  test('after failed or refused calls, too', () => {
    given(running(), asked(call('a', 'read'), call('b', 'forbidden')))
      .when(returned('a', 'error'))
      .thenIncludes('call_ended a error', 'turn_start 2');
  });

  test('in place: one agent_start, one agent_end, and consecutive turn numbers', () => {
    given(running(), followedUp('f'), answered())
      .when(answered('again'), toolsClosed)
      .thenCount('agent_start', 1)
      .thenCount('agent_end', 1)
      .thenEvent('agent_end', { turns: 2, run: 1 });
  });
});

describe('a follow-up', () => {
  test('is delivered when the run would end with a plain answer', () => {
    given(running(), followedUp('f'))
      .when(answered())
      .thenIncludes('turn_end 1', 'message_injected f followup at steering_check', 'turn_start 2')
      .thenState('assistant_streaming.streaming');
  });

  test('is not delivered while calls make the run continue anyway', () => {
    given(running(), followedUp('f'), asked(call('a', 'read')))
      .when(returned('a'))
      .thenNever('message_injected f');
  });

  test('is delivered after steering if both are queued', () => {
    given(running(), followedUp('f'), steered('m'))
      .when(answered())
      .thenIncludes('loop_checkpoint iteration_end delivers m')
      .thenNever('message_injected f')
      .when(answered())
      .thenIncludes('message_injected f followup at steering_check');
  });

  test('is delivered one at a time', () => {
    given(running(), followedUp('f1'), followedUp('f2'))
      .when(answered())
      .thenIncludes('message_injected f1 followup at steering_check')
      .thenNever('message_injected f2')
      .when(answered())
      .thenIncludes('message_injected f2 followup at steering_check');
  });

  test('is delivered with all others if the policy says so', () => {
    given(running({ followups: 'all' }), followedUp('f1'), followedUp('f2'), followedUp('f3'))
      .when(answered())
      .thenIncludes(
        'message_injected f1 followup at steering_check',
        'message_injected f2 followup at steering_check',
        'message_injected f3 followup at steering_check',
        'turn_start 2',
      );
  });

  test('stays queued if the run fails or is cancelled, and is delivered in the next run', () => {
    given(running(), followedUp('f'))
      .when(modelFailed(), toolsClosed)
      .thenIncludes('agent_end error pending 1')
      .when(prompted(), provisioned(), answered())
      .thenIncludes('message_injected f followup at steering_check');
    given(running(), followedUp('f'), asked(call('a', 'read')))
      .when(cancelled(), returned('a', 'cancelled'), toolsClosed)
      .thenIncludes('agent_end cancelled pending 1');
  });
});

describe('at the maximum of turns', () => {
  test('a turn with calls ends the run as max_turns', () => {
    given(running({ maxTurns: 1 }), asked(call('a', 'read')))
      .when(returned('a'), toolsClosed)
      .thenIncludes('call_ended a ok', 'loop_checkpoint post_tool_dispatch', 'turn_end 1', 'agent_end max_turns')
      .thenState('stopped')
      .thenNever('turn_start 2');
  });

  test('a plain answer ends the run as usual', () => {
    given(running({ maxTurns: 1 }))
      .when(answered(), toolsClosed)
      .thenIncludes('agent_end end_turn');
  });

  test('no queue is drained: post_tool_dispatch passes, the steer stays for the next run', () => {
    given(running({ maxTurns: 1 }), asked(call('a', 'read')), steered('m'))
      .when(returned('a'), toolsClosed)
      .thenIncludes('loop_checkpoint post_tool_dispatch', 'agent_end max_turns pending 1')
      .thenNever('message_injected m')
      .when(prompted(), provisioned())
      .thenIncludes('loop_checkpoint iteration_start delivers m');
  });

  test('no queue is drained: iteration_end passes, the follow-up stays', () => {
    given(running({ maxTurns: 1 }), steered('m'), followedUp('f'))
      .when(answered(), toolsClosed)
      .thenIncludes('loop_checkpoint iteration_end', 'agent_end max_turns pending 2')
      .thenNever('message_injected m', 'message_injected f');
  });

  test('pre_tool_dispatch still stops calls', () => {
    given(running({ maxTurns: 1 }), steered('m', 'interrupt_immediate'))
      .when(asked(call('a', 'read')), toolsClosed)
      .thenIncludes(
        'loop_checkpoint pre_tool_dispatch delivers m skips a',
        'call_ended a skipped',
        'message_injected m steer at pre_tool_dispatch',
        'agent_end max_turns',
      )
      .thenNever('call_started');
  });

  test('loop_exit still takes audit_only', () => {
    given(running({ maxTurns: 1 }), steered('m', 'audit_only'))
      .when(answered())
      .thenIncludes('loop_checkpoint loop_exit delivers m');
  });

  test('the first seam of the last turn still delivers: the turn can act on it', () => {
    given(running({ maxTurns: 2 }), asked(call('a', 'read')), steered('m1'))
      .when(returned('a'))
      .thenIncludes('loop_checkpoint post_tool_dispatch delivers m1', 'turn_start 2');
  });

  test('the next run counts from 0', () => {
    given(running({ maxTurns: 1 }), asked(call('a', 'read')), returned('a'), toolsClosed)
      .when(prompted(), provisioned({ maxTurns: 1 }), answered(), toolsClosed)
      .thenIncludes('turn_start 1', 'agent_end end_turn');
  });
});

describe('tools that terminate the run', () => {
  const ended: Move = [asked(call('a', 'done')), returned('a')];

  test('end the run after their turn', () => {
    given(running())
      .when(ended, toolsClosed)
      .thenIncludes('loop_checkpoint post_tool_dispatch', 'turn_end 1', 'agent_end terminated')
      .thenState('stopped')
      .thenCount('turn_end', 1);
  });

  test('do not, if one call of the batch does not terminate', () => {
    given(running(), asked(call('a', 'done'), call('b', 'read')), returned('a'))
      .when(returned('b'))
      .thenIncludes('turn_start 2');
  });

  test('do not, if one of them fails', () => {
    given(running(), asked(call('a', 'done'), call('b', 'done')), returned('a'))
      .when(returned('b', 'error'))
      .thenIncludes('turn_start 2');
  });

  test('do, if the other calls were refused: a refused call did not run', () => {
    given(running(), asked(call('a', 'done'), call('b', 'forbidden'), call('c', 'ask')), returned('a'))
      .when(denied('c'), toolsClosed)
      .thenIncludes('agent_end terminated');
  });

  test('do not, if all of them were refused', () => {
    given(running(), asked(call('c', 'ask')))
      .when(denied('c'))
      .thenIncludes('turn_start 2');
  });

  test('do not, if the last seam delivers a message: steering is answered', () => {
    given(running(), asked(call('a', 'done')), steered('m'))
      .when(returned('a'))
      .thenIncludes('loop_checkpoint post_tool_dispatch delivers m', 'turn_end 1', 'turn_start 2')
      .thenNever('agent_end');
  });

  test('do not, if an interrupt skipped the rest of their batch: its sender is answered', () => {
    given(running(), asked(call('a', 'done'), call('b', 'ask')), steered('m', 'interrupt_immediate'))
      .when(returned('a'))
      .thenIncludes('turn_end 1 dispatch_skipped', 'turn_start 2')
      .thenNever('agent_end');
  });

  test('do, at the maximum of turns, with a queued message, which stays queued', () => {
    given(running({ maxTurns: 1 }), asked(call('a', 'done')), steered('m'))
      .when(returned('a'), toolsClosed)
      .thenIncludes('agent_end terminated pending 1');
  });

  test('after a human approval terminate as well', () => {
    given(running({ rules: [{ tool: '*', action: 'ask' }] }), asked(call('a', 'done')), approved('a'))
      .when(returned('a'), toolsClosed)
      .thenIncludes('agent_end terminated');
  });

  test('leave follow-ups to the next run', () => {
    given(running(), followedUp('f'))
      .when(ended, toolsClosed)
      .thenIncludes('agent_end terminated pending 1')
      .thenNever('message_injected f');
  });
});

describe('an ended session continues with a new prompt', () => {
  test.each([
    ['stopped', answered()],
    ['failed', modelFailed()],
  ] as const)('after %s', (state, last) => {
    given(running())
      .when(last, toolsClosed)
      .thenState(state)
      .when(prompted('p2'))
      .thenJournal('prompt_received run 2')
      .thenState('provisioning.resolving')
      .when(provisioned(), answered('again'), toolsClosed)
      .thenIncludes('agent_start run 2', 'turn_start 1', 'agent_end end_turn')
      .thenState('stopped');
  });

  test('and records only changes of persona, prompt and tools', () => {
    given(running(), answered(), toolsClosed, prompted())
      .when(provisioned())
      .thenIncludes('agent_start run 2', 'turn_start 1')
      .thenCount('persona_changed', 1)
      .thenCount('tools_changed', 1)
      .thenCount('hooks_changed', 1);
    given(running(), answered(), toolsClosed, prompted())
      .when(provisioned({ tools: [] }))
      .thenCount('tools_changed', 2)
      .thenCount('hooks_changed', 1);
  });

  test('and keeps nothing of the end of the last run', () => {
    given(running(), modelFailed(), toolsClosed, prompted(), provisioned())
      .when(answered(), toolsClosed)
      .thenJournal(
        'message_complete "fine"',
        'loop_checkpoint iteration_end',
        'turn_end 1',
        'loop_checkpoint loop_exit',
        'tools_closed',
        'agent_end end_turn',
      );
  });
});
