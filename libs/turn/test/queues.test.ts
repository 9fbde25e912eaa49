/**
 * Queues: messages are delivered first in, first out, by the policy of their queue; messages with the same key
 * collapse.
 */
import { describe, test } from 'vitest';
import { given } from './given.ts';
import {
  answered,
  asked,
  call,
  cancelled,
  command,
  followedUp,
  hook,
  hooksSaid,
  type Move,
  modelStopped,
  preempted,
  prompted,
  provisioned,
  reminded,
  replaced,
  returned,
  revoked,
  running,
  started,
  steered,
  toolsClosed,
} from './moves.ts';
import { INTERRUPT } from './openings.ts';

const batch: Move = asked(call('a', 'read'));
const keyed = (id: string, mode = 'finish_step', key = 'k') => steered(id, mode, { dedupe_key: key });

describe('steering is delivered first in, first out,', () => {
  test('steers and reminders of every mode of the seam in one order', () => {
    given(running(), batch, steered('s1'), reminded('r1'), steered('s2', INTERRUPT), reminded('r2', INTERRUPT))
      .when(returned('a'))
      .thenIncludes(
        'loop_checkpoint post_tool_dispatch delivers s1 r1 s2 r2',
        'message_injected s1 steer at post_tool_dispatch',
        'reminder_fired r1 at post_tool_dispatch',
        'message_injected s2 steer at post_tool_dispatch',
        'reminder_fired r2 at post_tool_dispatch',
        'turn_end 1',
      );
  });

  test('past messages that the seam does not deliver, which keep their place', () => {
    given(running(), steered('s1'), steered('i1', INTERRUPT), steered('s2'), steered('i2', INTERRUPT))
      .when(batch)
      .thenIncludes('loop_checkpoint pre_tool_dispatch delivers i1 i2 skips a')
      .thenIncludes('turn_start 2', 'loop_checkpoint iteration_start delivers s1 s2');
  });

  test('from any sender, and from any run', () => {
    const from = (id: string, actor: string) => command('steer', id, { body: `do ${id}` }, actor);
    given(running(), answered(), toolsClosed, from('s1', 'ada'), from('s2', 'bob'), prompted(), from('s3', 'ada'))
      .when(provisioned())
      .thenIncludes('loop_checkpoint iteration_start delivers s1 s2 s3');
  });

  test('in the order of the stream, despite revoked or replaced messages in between', () => {
    given(running(), batch, steered('s1'), steered('s2'), steered('s3'), replaced('s1'), revoked('s2'), steered('s4'))
      .when(returned('a'))
      .thenIncludes('loop_checkpoint post_tool_dispatch delivers s1 s3 s4');
  });
});

describe('one at a time', () => {
  test('is one per model request: the oldest; the others wait for later requests', () => {
    given(running({ steering: 'one_at_a_time' }), batch, steered('s1'), reminded('r1'), steered('s2', INTERRUPT))
      .when(returned('a'))
      .thenIncludes('loop_checkpoint post_tool_dispatch delivers s1', 'turn_start 2', 'loop_checkpoint iteration_start')
      .thenEffects('call_model')
      .when(answered())
      .thenIncludes('loop_checkpoint iteration_end delivers r1', 'turn_start 3', 'loop_checkpoint iteration_start')
      .thenEffects('call_model')
      .when(asked(call('b', 'read')))
      .thenIncludes('loop_checkpoint pre_tool_dispatch delivers s2 skips b', 'turn_start 4');
  });

  test('delays a second interrupt too, until the model has answered the first', () => {
    given(running({ steering: 'one_at_a_time' }), steered('i1', INTERRUPT), batch)
      .when(steered('i2', INTERRUPT), steered('s1'))
      .thenNever('message_injected i2')
      .when(asked(call('b', 'read')))
      .thenIncludes('loop_checkpoint pre_tool_dispatch delivers i2 skips b', 'loop_checkpoint iteration_start')
      .thenNever('message_injected s1')
      .when(answered())
      .thenIncludes('loop_checkpoint iteration_end delivers s1');
  });

  test('delays only until the next model request, whatever causes it', () => {
    given(running({ steering: 'one_at_a_time' }), steered('s1'), steered('s2'), answered())
      .when(cancelled('c'), modelStopped(), toolsClosed)
      .thenIncludes('agent_end cancelled pending 1')
      // The next run's first request is a new one.
      .when(prompted(), provisioned())
      .thenIncludes('loop_checkpoint iteration_start delivers s2');
  });

  test('lets an interrupt pass while it prevents the model request', () => {
    const hooked = running({ steering: 'one_at_a_time', hooks: [hook('transform_context')] });
    given(hooked, hooksSaid(undefined), steered('s1'), answered())
      .when(preempted('p'), hooksSaid(undefined), modelStopped())
      .thenIncludes('loop_checkpoint iteration_end delivers p')
      .thenCount('message_injected s1 steer at iteration_end', 1);
  });

  test('lets it pass only if no message of its mode precedes it', () => {
    const hooked = running({ steering: 'one_at_a_time', hooks: [hook('transform_context')] });
    given(hooked, hooksSaid(undefined), steered('s1'), answered(), steered('i', INTERRUPT))
      .when(preempted('p'), hooksSaid(undefined), modelStopped())
      .thenIncludes('loop_checkpoint iteration_end delivers i', 'turn_start 3')
      .thenNever('message_injected p')
      .when(hooksSaid(undefined), answered())
      .thenIncludes('loop_checkpoint iteration_end delivers p');
  });

  test('delays a preempting interrupt that has ended running work', () => {
    given(running({ steering: 'one_at_a_time' }), asked(call('a', 'read'), call('b', 'ask')), steered('i', INTERRUPT))
      .when(preempted('p'), returned('a', 'cancelled'))
      .thenIncludes('loop_checkpoint post_tool_dispatch', 'turn_start 2')
      .thenNever('message_injected p')
      .thenEffects('call_model')
      .when(answered())
      .thenIncludes('loop_checkpoint iteration_end delivers p');
  });

  test('does not count messages that no model sees', () => {
    given(
      running({ steering: 'one_at_a_time' }),
      steered('a1', 'audit_only'),
      steered('s1'),
      cancelled('c'),
      modelStopped(),
    )
      .when(toolsClosed, prompted(), provisioned())
      .thenIncludes('loop_checkpoint iteration_start delivers s1');
  });

  test('the stop seam delivers the oldest interrupt, not the oldest message', () => {
    given(running({ steering: 'one_at_a_time' }), steered('s1'), steered('i1', INTERRUPT), steered('i2', INTERRUPT))
      .when(batch)
      .thenIncludes('loop_checkpoint pre_tool_dispatch delivers i1 skips a', 'turn_start 2')
      .thenNever('message_injected i2', 'message_injected s1');
  });

  test('is configured for steering and follow-ups separately', () => {
    const all: Move = [followedUp('f1'), followedUp('f2'), steered('s1'), steered('s2')];
    given(running({ steering: 'one_at_a_time', followups: 'all' }), all)
      .when(answered())
      .thenIncludes('loop_checkpoint iteration_end delivers s1')
      .when(answered())
      .thenIncludes('loop_checkpoint iteration_end delivers s2')
      .when(answered())
      .thenIncludes(
        'message_injected f1 followup at steering_check',
        'message_injected f2 followup at steering_check',
        'turn_start 4',
      );
    given(running({ steering: 'all', followups: 'one_at_a_time' }), all)
      .when(answered())
      .thenIncludes('loop_checkpoint iteration_end delivers s1 s2')
      .when(answered())
      .thenIncludes('message_injected f1 followup at steering_check', 'turn_start 3')
      .thenNever('message_injected f2');
  });
});

describe('queued messages with the same dedupe key collapse', () => {
  test('to the newest, at the position of the oldest, with an event for each', () => {
    given(running(), batch, steered('s1'), keyed('k1'), steered('s2'), keyed('k2'))
      .when(keyed('k3'))
      .thenJournal('steering_received k3 finish_step', 'injection_collapsed k2 into k3')
      .thenEvent('injection_collapsed', { command_id: 'k2', into: 'k3', dedupe_key: 'k' })
      .when(returned('a'))
      .thenIncludes('loop_checkpoint post_tool_dispatch delivers s1 k3 s2')
      .thenCount('injection_collapsed', 2)
      .thenNever('message_injected k1', 'message_injected k2');
  });

  test('under one key only; messages without a key do not collapse', () => {
    given(running(), batch, keyed('k1'), keyed('j1', 'finish_step', 'j'), steered('s1'), steered('s2'))
      .when(returned('a'))
      .thenIncludes('loop_checkpoint post_tool_dispatch delivers k1 j1 s1 s2')
      .thenNever('injection_collapsed');
  });

  test('also while they wait for the next run', () => {
    given(running(), answered(), toolsClosed, keyed('k1'), steered('s1'), keyed('k2'))
      .when(prompted(), provisioned())
      .thenIncludes('loop_checkpoint iteration_start delivers k2 s1');
  });

  test('and an interrupt that replaces another message stops calls', () => {
    given(running(), keyed('k1'), keyed('k2', INTERRUPT))
      .when(batch)
      .thenIncludes('loop_checkpoint pre_tool_dispatch delivers k2 skips a');
  });

  test('and an interrupt that is replaced by another message stops none', () => {
    given(running(), keyed('k1', INTERRUPT), keyed('k2'))
      .when(batch)
      .thenIncludes('loop_checkpoint pre_tool_dispatch', 'call_started a')
      .thenNever('call_ended a skipped');
  });

  test('a parked call is skipped by the newer one alone', () => {
    given(running(), asked(call('a', 'ask')), keyed('k1'))
      .when(keyed('k2', INTERRUPT))
      .thenIncludes(
        'steering_received k2 interrupt_immediate',
        'injection_collapsed k1 into k2',
        'loop_checkpoint pre_tool_dispatch delivers k2 skips a',
      )
      .thenNever('message_injected k1');
  });
});

describe('with queued steering and follow-ups', () => {
  test('steering goes first at every seam for follow-ups, for any number of turns', () => {
    given(running(), followedUp('f'), steered('s1'), answered(), steered('s2'))
      .when(answered())
      .thenIncludes('loop_checkpoint iteration_end delivers s2')
      .thenNever('message_injected f')
      .when(answered(), answered(), toolsClosed)
      .thenIncludes('message_injected f followup at steering_check', 'agent_end end_turn')
      .thenCount('agent_start', 1)
      .thenCount('agent_end', 1)
      .thenEvent('agent_end', { turns: 4 });
  });

  test('a message that is only recorded delays no follow-up', () => {
    given(running(), followedUp('f'), steered('s', 'audit_only'))
      .when(answered())
      .thenIncludes('message_injected f followup at steering_check', 'turn_start 2');
  });
});

test('messages before the first run stay in order too', () => {
  given(started(), steered('s1', INTERRUPT), reminded('r1'), steered('s2'))
    .when(provisioned())
    .thenIncludes('loop_checkpoint iteration_start delivers s1 r1 s2');
});
