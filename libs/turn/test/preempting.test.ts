/**
 * Preempting interrupts: they end the streaming answer and the running calls, and are delivered at the next seam.
 */
import { BOUNDS, type HookPoint } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { effectsOf, leafOf } from '../src/mod.ts';
import { given } from './given.ts';
import {
  answered,
  approved,
  asked,
  askedAt,
  call,
  callCancelled,
  cancelled,
  compacted,
  hook,
  hooksSaid,
  type Move,
  modelFailed,
  modelStopped,
  owned,
  preempted,
  prompted,
  provisioned,
  resumed,
  returned,
  revoked,
  running,
  started,
  steered,
  suspended,
  toolsClosed,
} from './moves.ts';
import { asleep, calling, ended, idled } from './openings.ts';

describe('while the model answers', () => {
  test('it ends the answer: partial text is kept and marked, unfinished calls are dropped, iteration_end delivers', () => {
    given(running(), preempted('m'))
      .when(modelStopped('I was about', call('a', 'read')))
      .thenJournal(
        'message_complete partial "I was about"',
        'loop_checkpoint iteration_end delivers m',
        'message_injected m steer at iteration_end',
        'turn_end 1',
        'turn_start 2',
        'loop_checkpoint iteration_start',
        'loop_checkpoint pre_compact',
        'loop_checkpoint post_compact',
      )
      .thenNever('call_started', 'call_ended', 'run_failed')
      .thenEffects('call_model');
  });

  test('the model is aborted in the record of the interrupt, with its grace period', () => {
    const { session } = given(running())
      .when(preempted('m'))
      .thenJournal('steering_received m interrupt_immediate preempt')
      .thenEffects('call_model aborted');
    expect(effectsOf(session.state)[0]?.abort?.graceMs).toBe(BOUNDS.abortGraceMs);
  });

  test('a plain interrupt lets it finish', () => {
    given(running()).when(steered('m', 'interrupt_immediate')).thenEffects('call_model');
  });

  test('a reminder may do the same, and stays a reminder', () => {
    given(running(), preempted('m', 'remind'))
      .when(modelStopped('half'))
      .thenIncludes('message_complete partial "half"', 'reminder_fired m at iteration_end', 'turn_start 2');
  });

  test('an answer without any text is complete, empty and partial: one per turn', () => {
    given(running(), preempted('m'))
      .when(modelStopped())
      .thenIncludes('message_complete partial', 'loop_checkpoint iteration_end delivers m')
      .thenCount('message_complete', 1)
      .thenCount('turn_end', 1);
  });

  test('an answer that was complete before it could be stopped is kept whole', () => {
    given(running(), preempted('m'))
      .when(answered('all of it'))
      .thenIncludes('message_complete "all of it"', 'loop_checkpoint iteration_end delivers m', 'turn_start 2')
      .thenNever('message_complete partial');
  });

  test('and its calls, which were complete too, are skipped at the stop seam', () => {
    given(running(), preempted('m'))
      .when(asked(call('a', 'read'), call('b', 'ask')))
      .thenIncludes(
        'loop_checkpoint pre_tool_dispatch delivers m skips a b',
        'call_ended a skipped',
        'call_ended b skipped',
        'turn_end 1 dispatch_skipped',
        'turn_start 2',
      )
      .thenNever('call_started');
  });

  test('a model that fails while it stops does not end the run', () => {
    given(running(), preempted('m'))
      .when(modelFailed('half'))
      .thenIncludes('message_complete partial "half"', 'loop_checkpoint iteration_end delivers m', 'turn_start 2')
      .thenNever('run_failed');
  });

  test('earlier messages are delivered with it, in order', () => {
    given(running(), steered('first'), preempted('second'), steered('third'))
      .when(modelStopped())
      .thenIncludes('loop_checkpoint iteration_end delivers first second third');
  });

  test('post_turn hooks get the shortened turn', () => {
    given(running({ hooks: [hook('post_turn')] }), preempted('m'), modelStopped('half'))
      .when(hooksSaid(undefined))
      .thenJournal(
        'hook_returned post_turn post_turn no_objection',
        'consult_ended post_turn',
        'loop_checkpoint iteration_end delivers m',
        'message_injected m steer at iteration_end',
        'turn_end 1',
        'turn_start 2',
        'loop_checkpoint iteration_start',
        'loop_checkpoint pre_compact',
        'loop_checkpoint post_compact',
      );
  });

  test('two in a row end one answer, once, and are delivered together', () => {
    given(running(), preempted('m'), preempted('n'))
      .when(modelStopped('half'))
      .thenIncludes('loop_checkpoint iteration_end delivers m n', 'turn_start 2')
      .thenCount('message_complete', 1)
      .thenCount('turn_end', 1);
  });

  test('with steering one at a time, the next answer is not ended for the second', () => {
    given(running({ steering: 'one_at_a_time' }), preempted('m'), preempted('n'), modelStopped('half'))
      .when()
      .thenCount('message_injected m steer at iteration_end', 1)
      .thenNever('message_injected n')
      .thenEffects('call_model')
      .when(answered())
      .thenCount('message_injected n steer at iteration_end', 1);
  });

  test('a repetition changes nothing', () => {
    given(running(), preempted('m')).when(preempted('m')).thenNothing('repeated command');
    given(running(), preempted('m'), modelStopped()).when(preempted('m')).thenNothing('repeated command');
  });

  test('in the last turn of the maximum it ends the answer, and waits for the next run', () => {
    given(running({ maxTurns: 1 }), preempted('m'))
      .when(modelStopped('half'))
      .thenIncludes('message_complete partial "half"', 'loop_checkpoint iteration_end', 'turn_end 1')
      .when(toolsClosed)
      .thenJournal('tools_closed', 'agent_end max_turns pending 1')
      .when(prompted(), provisioned())
      .thenIncludes('loop_checkpoint iteration_start delivers m')
      .thenEffects('call_model');
  });

  test('an earlier requested suspension starts after its delivery, and ends immediately', () => {
    given(running(), suspended(), preempted('m'))
      .when(modelStopped('half'))
      .thenIncludes(
        'message_injected m steer at iteration_end',
        'turn_end 1',
        'suspended suspend-1',
        'resumed interrupt m',
        'turn_start 2',
      );
  });

  test('a host that claims the session stops the answer, after any number of crashes', () => {
    const crashes: Move = Array.from({ length: BOUNDS.modelRestartsMax }, (_, i) => owned(i + 2));
    given(running(), crashes, preempted('m'))
      .when(owned(BOUNDS.modelRestartsMax + 2))
      .thenNever('run_failed')
      .thenEffects('call_model aborted');
  });

  test('a cancel overrides it: the message waits for the next run', () => {
    given(running(), preempted('m'), cancelled())
      .when(modelStopped('half'), toolsClosed)
      .thenIncludes('message_complete partial "half"', 'turn_end 1', 'agent_end cancelled pending 1')
      .thenNever('message_injected');
  });
});

describe('while calls run', () => {
  const two: Move = [running(), asked(call('a', 'read'), call('b', 'read'))];

  test('it cancels them, siblings too; post_tool_dispatch delivers it after all have stopped', () => {
    given(two)
      .when(preempted('m'))
      .thenJournal('steering_received m interrupt_immediate preempt')
      .thenEffects('call_tool a aborted', 'call_tool b aborted')
      .when(returned('b', 'cancelled'))
      .thenJournal('call_ended b cancelled')
      .when(returned('a', 'cancelled'))
      .thenIncludes(
        'call_ended a cancelled',
        'loop_checkpoint post_tool_dispatch delivers m',
        'message_injected m steer at post_tool_dispatch',
        'turn_end 1',
        'turn_start 2',
      );
  });

  test('a plain interrupt lets them finish', () => {
    given(two).when(steered('m', 'interrupt_immediate')).thenEffects('call_tool a', 'call_tool b');
  });

  test('the model reads who stopped them, and their output so far', () => {
    given(two, preempted('m'))
      .when(returned('a'), returned('b', 'cancelled'))
      .thenEvent('call_ended', {
        call_id: 'a',
        status: 'cancelled',
        is_error: true,
        result: {
          content: [
            { type: 'text', text: 'Cancelled by an unnamed sender: a preempting message arrived.' },
            { type: 'text', text: 'result of a' },
          ],
          is_error: true,
        },
      });
  });

  test('a call that does not stop within its grace period is abandoned, and its late result is dropped', () => {
    given(calling('read'), preempted('m'))
      .when(returned('a', 'cancelled', { timed_out: true }))
      .thenIncludes('call_ended a cancelled timed_out', 'loop_checkpoint post_tool_dispatch delivers m')
      .again()
      .thenNothing('no open effect 3-0');
  });

  test('a call with an unknown outcome stays interrupted', () => {
    given(calling('read'), preempted('m'))
      .when(returned('a', 'interrupted'))
      .thenIncludes('call_ended a interrupted', 'loop_checkpoint post_tool_dispatch delivers m');
  });

  test('calls that wait for a free slot never start: the stop seam delivers it as soon as a slot is free', () => {
    given(running({ parallelCalls: 1 }), asked(call('a', 'read'), call('b', 'read')), preempted('m'))
      .when(returned('a', 'cancelled'))
      .thenIncludes(
        'call_ended a cancelled',
        'loop_checkpoint pre_tool_dispatch delivers m skips b',
        'call_ended b skipped',
        'message_injected m steer at pre_tool_dispatch',
        'turn_end 1 dispatch_skipped',
      )
      .thenNever('call_started b');
  });

  test('a returned call keeps its result: hooks finish their check', () => {
    given(running({ hooks: [hook('PostToolUse')] }), asked(call('a', 'read'), call('b', 'read')), returned('a'))
      .when(preempted('m'))
      .thenEffects('call_tool b aborted', 'consult PostToolUse a')
      .when(hooksSaid({ result: 'seen' }), returned('b', 'cancelled'))
      .thenIncludes('call_ended a ok', 'call_ended b cancelled', 'loop_checkpoint post_tool_dispatch delivers m');
  });

  test('a result that hooks must check first is not shown without them', () => {
    given(calling('read', { hooks: [hook('PostToolUse')] }), preempted('m'))
      .when(returned('a'))
      .thenEvent('call_ended', {
        status: 'cancelled',
        result: {
          content: [
            {
              type: 'text',
              text: 'Cancelled by an unnamed sender after the tool had run: a preempting message arrived. The result is withheld because hooks had not checked it.',
            },
          ],
          is_error: true,
        },
      })
      .thenNever('hook_call');
  });

  test('a cancel of one of them has its usual answer', () => {
    given(two, preempted('m'), callCancelled('a', { reason: 'mine', inject_reminder: false }))
      .when(returned('a', 'cancelled'))
      .thenJournal('call_ended a cancelled', 'control_outcome cancel_call cancelled a because mine');
  });

  test('a batch that would have ended the run does not: the sender gets a turn', () => {
    given(calling('done'), preempted('m'))
      .when(returned('a', 'cancelled'))
      .thenIncludes('message_injected m steer at post_tool_dispatch', 'turn_start 2');
  });
});

describe('while calls are parked', () => {
  test('it is delivered immediately; parked calls are skipped, and running ones are cancelled', () => {
    given(running(), asked(call('a', 'ask'), call('b', 'read')))
      .when(preempted('m'))
      .thenJournal(
        'steering_received m interrupt_immediate preempt',
        'loop_checkpoint pre_tool_dispatch delivers m skips a',
        'approval_decided a superseded',
        'call_ended a skipped',
        'message_injected m steer at pre_tool_dispatch',
      )
      .thenEffects('call_tool b aborted')
      .when(returned('b', 'cancelled'))
      .thenIncludes('call_ended b cancelled', 'loop_checkpoint post_tool_dispatch', 'turn_end 1 dispatch_skipped')
      .when(approved('a'))
      .thenJournal('command_rejected not_pending allow-a', 'control_outcome approve not_pending a');
  });
});

describe('while older messages are compacted', () => {
  const compacting = (...points: readonly HookPoint[]): Move => [
    running({ compaction: {}, hooks: points.map((point) => hook(point)) }),
    askedAt(90, call('a', 'read')),
    returned('a'),
  ];
  const keyed = (id: string, preempt: boolean) =>
    steered(id, 'interrupt_immediate', { dedupe_key: 'k', ...(preempt ? { preempt } : {}) });

  test('the compaction completes, and the answer after it is ended before it starts', () => {
    given(compacting(), preempted('m'))
      .when()
      .thenState('assistant_streaming.compacting')
      .thenEffects('compact')
      .when(compacted())
      .thenEffects('call_model aborted')
      .when(modelStopped())
      .thenIncludes(
        'message_complete partial',
        'loop_checkpoint iteration_end delivers m',
        'turn_end 2',
        'turn_start 3',
      )
      .thenEffects('call_model');
  });

  test.each<[HookPoint, Move]>([
    ['pre_compact', [hooksSaid(undefined), compacted()]],
    ['post_compact', hooksSaid(undefined)],
    ['transform_context', hooksSaid(undefined)],
  ])('also during %s hooks', (point, end) => {
    const before: Move = point === 'post_compact' ? compacted() : [];
    const way: Move = point === 'transform_context' ? running({ hooks: [hook(point)] }) : compacting(point);
    given(way, before)
      .when()
      .thenEffects(`consult ${point}`)
      .when(preempted('m'), end)
      .thenEffects('call_model aborted');
  });

  test('one that was revoked meanwhile ends nothing', () => {
    given(compacting(), preempted('m'), revoked('m')).when(compacted()).thenEffects('call_model');
  });

  test('one of two that was revoked does not affect the other', () => {
    given(compacting(), preempted('m'), preempted('n'), revoked('m'))
      .when(compacted())
      .thenEffects('call_model aborted');
  });

  test('one replaced by a newer one that does not preempt ends nothing', () => {
    given(compacting(), keyed('m', true), keyed('n', false)).when(compacted()).thenEffects('call_model');
  });

  test('one that replaces another that would have waited ends the answer', () => {
    given(compacting(), keyed('m', false), keyed('n', true)).when(compacted()).thenEffects('call_model aborted');
  });

  test('any number of sent and revoked ones keeps no more state than the queue', () => {
    const back = Array.from({ length: 20 }, (_, i): Move => [preempted(`m${i}`), revoked(`m${i}`)]);
    const { state } = given(compacting(), back, preempted('n'));
    expect(state.context.preempting).toEqual(['n']);
  });
});

describe('without work to end', () => {
  test.each([
    ['PreToolUse', 'read', undefined],
    ['gate_tool_calls', 'read', [{ allow: true }]],
    ['permission_asked', 'ask', { decision: 'allow' }],
  ] as const)('during %s hooks and gate complete, and the stop seam delivers it', (point, toolName, said) => {
    given(running({ hooks: [hook(point)] }), asked(call('a', toolName)))
      .when(preempted('m'))
      .thenEffects(`consult ${point}${point === 'gate_tool_calls' ? '' : ' a'}`)
      .when(hooksSaid(said))
      .thenIncludes('loop_checkpoint pre_tool_dispatch delivers m skips a', 'turn_start 2')
      .thenNever('call_started', 'message_complete partial')
      .thenEffects('call_model');
  });

  test('during provisioning it is delivered at iteration_start, and the model answers', () => {
    given(started(), preempted('m'))
      .when(provisioned())
      .thenIncludes('loop_checkpoint iteration_start delivers m')
      .thenEffects('call_model')
      .when(answered())
      .thenIncludes('message_complete "fine"');
  });

  test('during post_turn hooks of a plain answer it is delivered at iteration_end', () => {
    given(running({ hooks: [hook('post_turn')] }), answered(), preempted('m'))
      .when(hooksSaid(undefined))
      .thenIncludes('loop_checkpoint iteration_end delivers m', 'turn_start 2')
      .thenEffects('call_model');
  });

  test('it wakes an idle daemon', () => {
    given(idled())
      .when(preempted('m'))
      .thenIncludes('loop_checkpoint daemon_idle_post delivers m', 'turn_start 2')
      .thenEffects('call_model');
  });

  test('it wakes a suspended session', () => {
    given(asleep())
      .when(preempted('m'))
      .thenIncludes('resumed interrupt m', 'turn_start 2', 'loop_checkpoint iteration_start delivers m')
      .thenEffects('call_model')
      .when(resumed())
      .thenJournal('command_rejected not_suspended resume-1', 'control_outcome resume not_suspended');
  });

  test.each([
    ['unwinding', [running(), cancelled()], [modelStopped(), toolsClosed]],
    ['closing tools', [running(), answered()], [toolsClosed]],
  ] as const)('in the teardown (%s) it waits for the next run, and ends nothing', (_name, way, end) => {
    given(way as Move)
      .when(preempted('m'), ...(end as readonly Move[]))
      .thenNever('message_injected')
      .when(prompted(), provisioned())
      .thenIncludes('loop_checkpoint iteration_start delivers m')
      .thenEffects('call_model');
  });

  test('in an ended session it waits for the next run', () => {
    const outcome = given(ended()).when(preempted('m'));
    outcome.thenJournal('steering_received m interrupt_immediate preempt').thenState('stopped');
    outcome.when(prompted(), provisioned()).thenIncludes('loop_checkpoint iteration_start delivers m');
    outcome.thenEffects('call_model');
    expect(leafOf(outcome.session.state)).toBe('assistant_streaming.streaming');
  });
});
