/** When a run goes on, and when it ends: calls, steering, follow-ups, the cap, and tools that terminate. */
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

describe('a run goes on', () => {
  test('after calls: their results are the next prompt', () => {
    given(running(), asked(call('a', 'read')))
      .when(returned('a'))
      .thenIncludes('turn_end 1', 'turn_start 2')
      .thenEffects('call_model');
  });

  test('after calls that failed or were refused, too', () => {
    given(running(), asked(call('a', 'read'), call('b', 'forbidden')))
      .when(returned('a', 'error'))
      .thenIncludes('call_ended a error', 'turn_start 2');
  });

  test('in place: one agent_start, one agent_end, and turn numbers go on', () => {
    given(running(), followedUp('f'), answered())
      .when(answered('again'), toolsClosed)
      .thenCount('agent_start', 1)
      .thenCount('agent_end', 1)
      .thenEvent('agent_end', { turns: 2, run: 1 });
  });
});

describe('a follow-up', () => {
  test('is taken when the run would end with a plain answer', () => {
    given(running(), followedUp('f'))
      .when(answered())
      .thenIncludes('turn_end 1', 'message_injected f followup at steering_check', 'turn_start 2')
      .thenState('assistant_streaming.streaming');
  });

  test('is not taken while calls make the run go on anyway', () => {
    given(running(), followedUp('f'), asked(call('a', 'read')))
      .when(returned('a'))
      .thenNever('message_injected f');
  });

  test('stays behind steering: if both wait, steering goes first', () => {
    given(running(), followedUp('f'), steered('m'))
      .when(answered())
      .thenIncludes('loop_checkpoint iteration_end delivers m')
      .thenNever('message_injected f')
      .when(answered())
      .thenIncludes('message_injected f followup at steering_check');
  });

  test('is taken one at a time', () => {
    given(running(), followedUp('f1'), followedUp('f2'))
      .when(answered())
      .thenIncludes('message_injected f1 followup at steering_check')
      .thenNever('message_injected f2')
      .when(answered())
      .thenIncludes('message_injected f2 followup at steering_check');
  });

  test('is taken with all others where the policy says so', () => {
    given(running({ followups: 'all' }), followedUp('f1'), followedUp('f2'), followedUp('f3'))
      .when(answered())
      .thenIncludes(
        'message_injected f1 followup at steering_check',
        'message_injected f2 followup at steering_check',
        'message_injected f3 followup at steering_check',
        'turn_start 2',
      );
  });

  test('stays where the run fails or is cancelled, and the next run takes it', () => {
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

describe('at the cap', () => {
  test('a turn with calls ends the run as max_turns', () => {
    given(running({ maxTurns: 1 }), asked(call('a', 'read')))
      .when(returned('a'), toolsClosed)
      .thenIncludes('call_ended a ok', 'loop_checkpoint post_tool_dispatch', 'turn_end 1', 'agent_end max_turns')
      .thenState('stopped')
      .thenNever('turn_start 2');
  });

  test('a plain answer ends the run as it would without a cap', () => {
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

describe('tools that terminate', () => {
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

  test('do, if what did not terminate was refused: a refused call did not run', () => {
    given(running(), asked(call('a', 'done'), call('b', 'forbidden'), call('c', 'ask')), returned('a'))
      .when(denied('c'), toolsClosed)
      .thenIncludes('agent_end terminated');
  });

  test('do not, if all of them were refused', () => {
    given(running(), asked(call('c', 'ask')))
      .when(denied('c'))
      .thenIncludes('turn_start 2');
  });

  test('do not, if the last seam delivers: steering is answered', () => {
    given(running(), asked(call('a', 'done')), steered('m'))
      .when(returned('a'))
      .thenIncludes('loop_checkpoint post_tool_dispatch delivers m', 'turn_end 1', 'turn_start 2')
      .thenNever('agent_end');
  });

  test('do not, if an interrupt has skipped the rest of their batch: its sender is answered', () => {
    given(running(), asked(call('a', 'done'), call('b', 'ask')), steered('m', 'interrupt_immediate'))
      .when(returned('a'))
      .thenIncludes('turn_end 1 dispatch_skipped', 'turn_start 2')
      .thenNever('agent_end');
  });

  test('do, at the cap, although something waits: it stays', () => {
    given(running({ maxTurns: 1 }), asked(call('a', 'done')), steered('m'))
      .when(returned('a'), toolsClosed)
      .thenIncludes('agent_end terminated pending 1');
  });

  test('that a person allowed terminate as well', () => {
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

describe('a session that has ended goes on with a new prompt', () => {
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

  test('says of its surroundings only what has changed', () => {
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

  test('and keeps nothing of how the last run ended', () => {
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
