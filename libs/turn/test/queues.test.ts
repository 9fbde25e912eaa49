/** Queues: what waits is delivered first in, first out, as its queue's policy says, and what shares a key collapses. */
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
  test('steers and reminders of every mode that the seam takes in one order', () => {
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

  test('past what the seam does not take, which keeps its place', () => {
    given(running(), steered('s1'), steered('i1', INTERRUPT), steered('s2'), steered('i2', INTERRUPT))
      .when(batch)
      .thenIncludes('loop_checkpoint pre_tool_dispatch delivers i1 i2 skips a')
      .thenIncludes('turn_start 2', 'loop_checkpoint iteration_start delivers s1 s2');
  });

  test('whoever sent it, and in whichever run it came', () => {
    const from = (id: string, actor: string) => command('steer', id, { body: `do ${id}` }, actor);
    given(running(), answered(), toolsClosed, from('s1', 'ada'), from('s2', 'bob'), prompted(), from('s3', 'ada'))
      .when(provisioned())
      .thenIncludes('loop_checkpoint iteration_start delivers s1 s2 s3');
  });

  test('in the order of the stream, whatever was taken back or replaced between', () => {
    given(running(), batch, steered('s1'), steered('s2'), steered('s3'), replaced('s1'), revoked('s2'), steered('s4'))
      .when(returned('a'))
      .thenIncludes('loop_checkpoint post_tool_dispatch delivers s1 s3 s4');
  });
});

describe('one at a time', () => {
  test('is one for each request to the model: the oldest, and the rest wait for the request after it', () => {
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

  test('holds a second interrupt back too, until the model has heard the first', () => {
    given(running({ steering: 'one_at_a_time' }), steered('i1', INTERRUPT), batch)
      .when(steered('i2', INTERRUPT), steered('s1'))
      .thenNever('message_injected i2')
      .when(asked(call('b', 'read')))
      .thenIncludes('loop_checkpoint pre_tool_dispatch delivers i2 skips b', 'loop_checkpoint iteration_start')
      .thenNever('message_injected s1')
      .when(answered())
      .thenIncludes('loop_checkpoint iteration_end delivers s1');
  });

  test('holds back for no longer than until the model is asked, wherever the request comes from', () => {
    given(running({ steering: 'one_at_a_time' }), steered('s1'), steered('s2'), answered())
      .when(cancelled('c'), modelStopped(), toolsClosed)
      .thenIncludes('agent_end cancelled pending 1')
      // The next run's first request is another one.
      .when(prompted(), provisioned())
      .thenIncludes('loop_checkpoint iteration_start delivers s2');
  });

  test('lets an interrupt by, while it keeps the model from being asked', () => {
    const hooked = running({ steering: 'one_at_a_time', hooks: [hook('transform_context')] });
    given(hooked, hooksSaid(undefined), steered('s1'), answered())
      .when(preempted('p'), hooksSaid(undefined), modelStopped())
      .thenIncludes('loop_checkpoint iteration_end delivers p')
      .thenCount('message_injected s1 steer at iteration_end', 1);
  });

  test('lets it by only where nothing of its mode came before it', () => {
    const hooked = running({ steering: 'one_at_a_time', hooks: [hook('transform_context')] });
    given(hooked, hooksSaid(undefined), steered('s1'), answered(), steered('i', INTERRUPT))
      .when(preempted('p'), hooksSaid(undefined), modelStopped())
      .thenIncludes('loop_checkpoint iteration_end delivers i', 'turn_start 3')
      .thenNever('message_injected p')
      .when(hooksSaid(undefined), answered())
      .thenIncludes('loop_checkpoint iteration_end delivers p');
  });

  test('does not count what no model is shown', () => {
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

  test('is said of steering and of follow-ups apart', () => {
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

describe('what waits under one dedupe key collapses', () => {
  test('to the newest, in the place of the oldest, and the journal says so of each', () => {
    given(running(), batch, steered('s1'), keyed('k1'), steered('s2'), keyed('k2'))
      .when(keyed('k3'))
      .thenJournal('steering_received k3 finish_step', 'injection_collapsed k2 into k3')
      .thenEvent('injection_collapsed', { command_id: 'k2', into: 'k3', dedupe_key: 'k' })
      .when(returned('a'))
      .thenIncludes('loop_checkpoint post_tool_dispatch delivers s1 k3 s2')
      .thenCount('injection_collapsed', 2)
      .thenNever('message_injected k1', 'message_injected k2');
  });

  test('under one key only, and under none not at all', () => {
    given(running(), batch, keyed('k1'), keyed('j1', 'finish_step', 'j'), steered('s1'), steered('s2'))
      .when(returned('a'))
      .thenIncludes('loop_checkpoint post_tool_dispatch delivers k1 j1 s1 s2')
      .thenNever('injection_collapsed');
  });

  test('also where it waits for the next run', () => {
    given(running(), answered(), toolsClosed, keyed('k1'), steered('s1'), keyed('k2'))
      .when(prompted(), provisioned())
      .thenIncludes('loop_checkpoint iteration_start delivers k2 s1');
  });

  test('and an interrupt so stops calls in the place of what would not have', () => {
    given(running(), keyed('k1'), keyed('k2', INTERRUPT))
      .when(batch)
      .thenIncludes('loop_checkpoint pre_tool_dispatch delivers k2 skips a');
  });

  test('so that an interrupt stops none whose place was taken by what can wait', () => {
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

describe('if steering and follow-ups both wait', () => {
  test('steering goes first wherever a follow-up could be taken, however long it goes on', () => {
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

  test('what is for the record only makes no follow-up wait', () => {
    given(running(), followedUp('f'), steered('s', 'audit_only'))
      .when(answered())
      .thenIncludes('message_injected f followup at steering_check', 'turn_start 2');
  });
});

test('what came before the first run stays in order too', () => {
  given(started(), steered('s1', INTERRUPT), reminded('r1'), steered('s2'))
    .when(provisioned())
    .thenIncludes('loop_checkpoint iteration_start delivers s1 r1 s2');
});
