/**
 * Cancellation of a run in every state, and of one call in every status.
 */
import { BOUNDS, type Step } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { effectsOf, isEnded, leafOf } from '../src/mod.ts';
import { given, type Session } from './given.ts';
import { leafNames } from './machine-edges.ts';
import {
  answered,
  approved,
  asked,
  askedAt,
  call,
  callCancelled,
  cancelled,
  compacted,
  Failing,
  followedUp,
  hook,
  hooksCancelled,
  hooksSaid,
  later,
  type Move,
  modelStopped,
  notProvisioned,
  owned,
  preempted,
  prompted,
  provisioned,
  reminded,
  resumed,
  returned,
  running,
  sessionFailed,
  started,
  steered,
  suspended,
  toolsClosed,
} from './moves.ts';
import { asleep, calling, ended, idled } from './openings.ts';
import { settlement } from './world.ts';

/** The second prompt exceeds the window. */
const compacting = (...points: Parameters<typeof hook>[0][]): Move => [
  running({ compaction: {}, hooks: points.map((point) => hook(point)) }),
  askedAt(90, call('a', 'read')),
  returned('a'),
];

const PLAN: Step = { name: 'plan', prompt: 'Plan it.', error_boundary: 'fail' };

/** Moves to every state in which a session waits. In other states no input can arrive: a record is one step. */
const WAITING: Readonly<Record<string, Move>> = {
  'provisioning.resolving': started(),
  'provisioning.session_start': [started(), provisioned({ hooks: [hook('session_start')] })],
  'provisioning.user_prompt_submit': [started(), provisioned({ hooks: [hook('user_prompt_submit')] })],
  'assistant_streaming.streaming': running(),
  'assistant_streaming.pre_step': running({ steps: [PLAN], hooks: [hook('PreStep')] }),
  'assistant_streaming.vetting_compaction': [compacting('pre_compact')],
  'assistant_streaming.compacting': [compacting()],
  'assistant_streaming.compacted': [compacting('post_compact'), compacted()],
  'assistant_streaming.transforming': running({ hooks: [hook('transform_context')] }),
  'function_execute.pre_tool_use': calling('read', { hooks: [hook('PreToolUse')] }),
  'function_execute.gate_tool_calls': calling('read', { hooks: [hook('gate_tool_calls')] }),
  'function_execute.permission_asked': calling('ask', { hooks: [hook('permission_asked')] }),
  'function_execute.running': [running({ parallelCalls: 1 }), asked(call('a', 'read'), call('b', 'read'))],
  'function_awaiting_approval.parked': [running(), asked(call('a', 'ask'), call('b', 'read'))],
  'steering_check.post_turn': [running({ hooks: [hook('post_turn')] }), answered()],
  'daemon_idle.session_idle': idled({ hooks: [hook('session_idle')] }),
  'steering_check.file_edited': [
    calling('read', { hooks: [hook('file_edited')] }),
    returned('a', 'ok', { edited: ['a.ts'] }),
  ],
  'steering_check.stop_check': [running({ stopWhen: [{ predicate: 'enough' }] }), answered()],
  'daemon_idle.waiting': idled(),
  'suspended.pre_suspend': [running({ hooks: [hook('pre_suspend')] }), suspended(), answered()],
  'suspended.parked': asleep(),
  'suspended.post_resume': [running({ hooks: [hook('post_resume')] }), suspended(), answered(), resumed()],
  'tearing_down.unwinding': [running(), sessionFailed],
  'tearing_down.file_edited': [
    calling('done', { hooks: [hook('file_edited')] }),
    returned('a', 'ok', { edited: ['a.ts'] }),
  ],
  'tearing_down.closing_tools': [running(), answered()],
  'tearing_down.session_error': [
    running({ hooks: [hook('session_error')] }),
    sessionFailed,
    modelStopped(),
    toolsClosed,
  ],
  'tearing_down.pre_finish': ended({ hooks: [hook('pre_finish')] }),
  'tearing_down.on_unsettled_detected': [
    running({ hooks: [hook('on_unsettled_detected')] }),
    answered(),
    steered('late'),
    toolsClosed,
  ],
  'steering_check.post_step': [running({ steps: [PLAN], hooks: [hook('PostStep')] }), answered()],
  'tearing_down.post_finish': ended({ hooks: [hook('post_finish')] }),
  'tearing_down.session_end': ended({ hooks: [hook('session_end')] }),
};
const ENDED = ['stopped', 'failed'];
/** States that a session only passes within one record. */
const PASSING = [
  'assistant_streaming.opening',
  'assistant_streaming.iteration_start',
  'assistant_streaming.pre_compact',
  'assistant_streaming.post_compact',
  'function_execute.pre_tool_dispatch',
  'function_execute.dispatching',
  'function_execute.post_tool_dispatch',
  'function_awaiting_approval.pre_tool_dispatch',
  'steering_check.iteration_end',
  'steering_check.closing',
  'steering_check.follow_up',
  'steering_check.resuming',
  'daemon_idle.daemon_idle_pre',
  'daemon_idle.daemon_idle_post',
  'suspended.entering',
  'tearing_down.turn_closing',
  'tearing_down.loop_exit',
  'tearing_down.ending',
];

test('the moves below lead to every state in which a session waits', () => {
  expect([...Object.keys(WAITING), ...ENDED, ...PASSING].sort()).toEqual(leafNames().sort());
});

function letGo(session: Session): void {
  for (let input = settlement(session.state); input && !isEnded(session.state); input = settlement(session.state)) {
    session.make(input);
  }
}

describe('cancel', () => {
  describe.each(Object.entries(WAITING))('in %s', (leaf, way) => {
    test('starts the teardown immediately, aborts running effects, and ends the run after they have stopped', () => {
      const outcome = given(way).when();
      outcome.thenState(leaf);
      const failed = outcome.session.state.context.failure !== null;
      const cancel = outcome.when(cancelled('x', 'enough'));
      expect(leafOf(cancel.session.state)).toMatch(/^tearing_down/);
      for (const effect of effectsOf(cancel.session.state)) {
        // Hooks for failures are called even if a failed run is cancelled.
        const isOfEnd =
          effect.kind === 'close_tools' || (effect.kind === 'consult' && effect.point === 'session_error');
        if (!isOfEnd) expect(effect.abort, effect.kind).not.toBeNull();
      }
      letGo(cancel.session);
      const { pending } = cancel.session.state.context;
      cancel
        .thenState(failed ? 'failed' : 'stopped')
        .thenIncludes(
          'control_outcome cancel cancelled because enough',
          `agent_end ${failed ? 'error' : 'cancelled'}${pending.length > 0 ? ` pending ${pending.length}` : ''}`,
        )
        .thenCount('agent_end', 1)
        .thenCount('agent_start', 1);
      if (!failed) cancel.thenEvent('agent_end', { reason: 'enough' });
    });

    test('repeated says already_cancelled with the first reason, and changes nothing', () => {
      const outcome = given(way).when(cancelled('x', 'enough'));
      if (outcome.session.state.context.stop_reason !== 'cancelled' || isEnded(outcome.session.state)) return;
      const before = leafOf(outcome.session.state);
      outcome
        .when(cancelled('y', 'again'))
        .thenJournal('control_outcome cancel already_cancelled because enough')
        .thenState(before);
    });
  });

  test('on an ended session is already_cancelled or not_running', () => {
    given(ended())
      .when(cancelled())
      .thenJournal('command_rejected not_running cancel-1', 'control_outcome cancel not_running');
    given(running(), cancelled(), modelStopped(), toolsClosed)
      .when(cancelled('cancel-2'))
      .thenJournal('command_rejected already_cancelled cancel-2', 'control_outcome cancel already_cancelled');
  });

  test('keeps the text of the model so far, marked as partial, and drops its unfinished calls', () => {
    given(running(), cancelled())
      .when(modelStopped('I was about', call('a', 'read')))
      .thenIncludes('message_complete partial "I was about"', 'turn_end 1')
      .thenNever('call_started', 'call_ended');
  });

  test('keeps an answer that completed just before as partial, and starts none of its calls', () => {
    given(running(), cancelled())
      .when(asked(call('a', 'read')), toolsClosed)
      .thenIncludes('message_complete partial', 'turn_end 1', 'agent_end cancelled')
      .thenNever('call_started', 'call_ended', 'message_complete asks');
  });

  test('starts no further call, and stops the running ones', () => {
    given(running({ parallelCalls: 1 }), asked(call('a', 'read'), call('b', 'read')))
      .when(cancelled())
      .thenJournal('control_outcome cancel cancelled', 'call_ended b aborted')
      .thenEffects('call_tool a aborted')
      .when(returned('a', 'cancelled'))
      .thenIncludes('call_ended a cancelled', 'turn_end 1', 'loop_checkpoint loop_exit')
      .thenNever('call_started b');
  });

  test('waits for a call up to its grace period and drops a later result', () => {
    given(calling('read'), cancelled())
      .when(returned('a', 'cancelled', { timed_out: true }))
      .thenIncludes('call_ended a cancelled timed_out')
      .again()
      .thenNothing('no open effect 3-0');
  });

  test('does not report aborted hooks as failed', () => {
    given(calling('read', { hooks: [hook('PreToolUse')] }), cancelled())
      .when(hooksCancelled)
      .thenIncludes('consult_ended PreToolUse a')
      .thenNever('hook_returned');
  });

  test('withdraws a requested suspension', () => {
    given(running(), suspended(), cancelled())
      .when(modelStopped(), toolsClosed)
      .thenIncludes('agent_end cancelled')
      .thenNever('suspended');
  });

  test('before provisioning still starts and ends the run once', () => {
    given(started(), cancelled())
      .when(notProvisioned('cancelled'))
      .thenJournal('agent_start run 1', 'loop_checkpoint loop_exit', 'agent_end cancelled')
      .thenState('stopped');
  });

  test('overrides a provision that completed in the meantime', () => {
    given(started(), cancelled())
      .when(provisioned())
      .thenJournal('agent_start run 1', 'loop_checkpoint loop_exit', 'agent_end cancelled')
      .thenNever('turn_start', 'persona_changed');
  });

  test('keeps the session: it continues with the next prompt', () => {
    given(running(), steered('m'), followedUp('f'), cancelled(), modelStopped(), toolsClosed)
      .when(prompted(), provisioned())
      .thenIncludes('agent_start run 2', 'loop_checkpoint iteration_start delivers m')
      .when(answered())
      .thenIncludes('message_injected f followup at steering_check');
  });
});

describe('cancel_call', () => {
  const one: Move = calling('read');

  test('on a running call asks the tool to stop, and ends it as cancelled afterwards', () => {
    given(one)
      .when(callCancelled('a', { reason: 'too slow' }))
      .thenJournal('call_cancel_requested a')
      .thenEffects('call_tool a aborted')
      .when(returned('a', 'cancelled'))
      .thenIncludes(
        'call_ended a cancelled',
        'control_outcome cancel_call cancelled a because too slow',
        'message_injected cancel-a direct at direct',
        'loop_checkpoint post_tool_dispatch',
        'turn_start 2',
      )
      .thenEvent('control_outcome', { tool: 'read', target: 'a' });
  });

  test('names the canceller to the model in a reminder, which is optional', () => {
    given(one, callCancelled('a', {}, 'c', 'ada'))
      .when(returned('a', 'cancelled'))
      .thenEvent('message_injected', {
        message: {
          role: 'reminder',
          content: [{ type: 'text', text: 'Tool call a (read) was cancelled by ada. The tool itself did not fail.' }],
        },
      });
    given(one, callCancelled('a', { inject_reminder: false }))
      .when(returned('a', 'cancelled'))
      .thenIncludes('call_ended a cancelled')
      .thenNever('message_injected');
  });

  test('is reported as timeout if the tool does not stop in time', () => {
    given(one, callCancelled('a', { timeout_ms: 10 }))
      .when(returned('a', 'cancelled', { timed_out: true }))
      .thenIncludes('call_ended a cancelled timed_out', 'control_outcome cancel_call timeout a');
  });

  test('gives the tool the requested grace period', () => {
    const { session } = given(one).when(callCancelled('a', { timeout_ms: 10 }));
    expect(effectsOf(session.state)[0]?.abort).toEqual({ reason: 'cancelled', graceMs: 10 });
    const { session: usual } = given(one).when(callCancelled('a', { reason: 'r' }));
    expect(effectsOf(usual.state)[0]?.abort).toEqual({ reason: 'r', graceMs: BOUNDS.abortGraceMs });
  });

  test('ends as cancelled even if the tool answers first, with its answer', () => {
    given(one, callCancelled('a'))
      .when(returned('a'))
      .thenIncludes('call_ended a cancelled', 'control_outcome cancel_call cancelled a')
      .thenEvent('call_ended', {
        result: {
          content: [
            { type: 'text', text: 'Cancelled by an unnamed sender.' },
            { type: 'text', text: 'result of a' },
          ],
          is_error: true,
        },
      });
  });

  test('on a call after a crash of its host reports it as cancelled with an unknown progress', () => {
    given(one, callCancelled('a'))
      .when(owned(2), returned('a', 'interrupted'))
      .thenIncludes('call_ended a cancelled', 'control_outcome cancel_call cancelled a')
      .thenEvent('call_ended', {
        result: {
          content: [
            { type: 'text', text: 'Cancelled by an unnamed sender.' },
            { type: 'text', text: 'nobody knows of a' },
          ],
          is_error: true,
        },
      });
  });

  test('repeated is already_cancelled, with the first reason', () => {
    given(one, callCancelled('a', { reason: 'first' }))
      .when(callCancelled('a', { reason: 'second' }, 'again'))
      .thenJournal('control_outcome cancel_call already_cancelled a because first');
  });

  test('on a parked call ends it, and supersedes its approval', () => {
    given(running(), asked(call('a', 'ask'), call('b', 'read')))
      .when(callCancelled('a', { reason: 'no need' }))
      .thenJournal(
        'approval_decided a superseded',
        'call_ended a cancelled',
        'control_outcome cancel_call cancelled a because no need',
        'message_injected cancel-a direct at direct',
      )
      .thenState('function_execute.running')
      .when(approved('a'))
      .thenJournal('command_rejected not_pending allow-a', 'control_outcome approve not_pending a')
      .when(callCancelled('a', {}, 'again'))
      .thenJournal('control_outcome cancel_call already_cancelled a because no need');
  });

  test.each<[string, string, readonly Move[], string]>([
    [
      'a person',
      'Cancelled by ada: too slow.',
      [calling('read'), callCancelled('a', { reason: 'too slow' }, 'c', 'ada'), returned('a', 'cancelled')],
      'cancelled',
    ],
    [
      'a person, and that the outcome of a call that did not stop is unknown',
      'Cancelled by ada: too slow. The tool did not confirm that it stopped, so the outcome of this tool call is unknown.',
      [
        calling('read'),
        callCancelled('a', { reason: 'too slow' }, 'c', 'ada'),
        returned('a', 'cancelled', { timed_out: true }),
      ],
      'cancelled',
    ],
    [
      'a person, before it has run',
      'Cancelled by ada before it was run: no need.',
      [calling('ask'), callCancelled('a', { reason: 'no need' }, 'c', 'ada')],
      'cancelled',
    ],
    [
      'a person who cancels the run',
      'Cancelled by ada, with the run: enough.',
      [calling('read'), cancelled('c', 'enough', 'ada'), returned('a', 'cancelled')],
      'cancelled',
    ],
    [
      'a person who cancels the run before it has run',
      'The tool call was not run: ada cancelled the run: enough.',
      [running({ parallelCalls: 1 }), asked(call('b', 'read'), call('a', 'read')), cancelled('c', 'enough', 'ada')],
      'aborted',
    ],
    [
      'a message that does not wait',
      'Cancelled by ada: a preempting message arrived.',
      [calling('read'), preempted('m', 'steer', 'ada'), returned('a', 'cancelled')],
      'cancelled',
    ],
    [
      'the time budget',
      'Cancelled by the host, with the run: the time budget is exhausted: 1000 ms of 1000 ms used.',
      [calling('read', { budgets: { wall_time_ms: 1_000 } }), later(1_000), reminded('r'), returned('a', 'cancelled')],
      'cancelled',
    ],
  ])('the result contains actor and reason: %s', (_who, text, moves, status) => {
    given(...moves.slice(0, -1))
      .when(moves.at(-1) as Move)
      .thenEvent('call_ended', {
        call_id: 'a',
        status: status as 'cancelled',
        result: { content: [{ type: 'text', text }], is_error: true },
      });
  });

  test('after the grace period reports the real duration', () => {
    given(one, later(7_000), callCancelled('a', { timeout_ms: 10 }), later(10))
      .when(returned('a', 'cancelled', { timed_out: true, duration_ms: 0 }))
      .thenEvent('call_ended', { call_id: 'a', timed_out: true, duration_ms: 7_010 });
  });

  test('on the only parked call continues the turn', () => {
    given(calling('ask'))
      .when(callCancelled('a', { inject_reminder: false }))
      .thenIncludes('control_outcome cancel_call cancelled a', 'loop_checkpoint post_tool_dispatch', 'turn_start 2');
  });

  test('on a call that waits for a free slot ends it before it runs', () => {
    given(running({ parallelCalls: 1 }), asked(call('a', 'read'), call('b', 'read')))
      .when(callCancelled('b', { inject_reminder: false }))
      .thenJournal('call_ended b cancelled', 'control_outcome cancel_call cancelled b')
      .when(returned('a'))
      .thenIncludes('loop_checkpoint post_tool_dispatch')
      .thenNever('call_started b');
  });

  test('on an allowed call that waits for a free slot ends it before it runs', () => {
    given(
      running({ parallelCalls: 1 }),
      asked(call('a', 'read'), call('b', 'ask')),
      approved('b'),
      callCancelled('b', { inject_reminder: false }),
    )
      .when(returned('a'))
      .thenNever('call_started b');
  });

  test('on a call that hooks check ends it, whatever they answer', () => {
    given(calling('read', { hooks: [hook('PreToolUse')] }))
      .when(callCancelled('a', { inject_reminder: false }))
      .thenJournal('call_ended a cancelled', 'control_outcome cancel_call cancelled a')
      .thenState('function_execute.pre_tool_use')
      .when(hooksSaid(undefined))
      .thenIncludes(
        'consult_ended PreToolUse a',
        'loop_checkpoint pre_tool_dispatch',
        'loop_checkpoint post_tool_dispatch',
      )
      .thenNever('call_started');
  });

  test.each([
    ['refuse it', { deny: 'no' }],
    ['rewrite it', { args: { a: 1 } }],
    ['fail', new Failing()],
  ])('on a call that hooks check ends it once, although they %s', (_name, said) => {
    given(calling('read', { hooks: [hook('PreToolUse')] }), callCancelled('a'))
      .when(hooksSaid(said))
      .thenNever('call_args_rewritten', 'hook_vetoed')
      .thenCount('call_ended a', 1);
  });

  test('on a call that permission hooks check ends it once', () => {
    given(calling('ask', { hooks: [hook('permission_asked')] }), callCancelled('a'))
      .when(hooksSaid({ decision: 'deny' }))
      .thenNever('hook_vetoed')
      .thenCount('call_ended a', 1);
  });

  describe('on a call with a result that hooks check', () => {
    const seen: Move = [
      calling('read', { hooks: [hook('PostToolUse'), hook('gate_tool_calls')] }),
      hooksSaid([{ allow: true }]),
      returned('a'),
    ];

    test('aborts the consult, and ends the call after the hooks have stopped', () => {
      given(seen)
        .when(callCancelled('a'))
        .thenJournal('call_cancel_requested a')
        .thenEffects('consult PostToolUse a aborted')
        .when(hooksCancelled)
        .thenIncludes(
          'call_ended a cancelled',
          'control_outcome cancel_call cancelled a',
          'consult_ended PostToolUse a',
          'turn_start 2',
        );
    });

    test.each([
      ['before the hooks see it', [asked(call('a', 'read'), call('b', 'read')), returned('b'), returned('a')], []],
      ['while they check it', [asked(call('a', 'read')), returned('a')], [hooksCancelled]],
    ])('tells the model that the call had run: %s', (_when, way, stop) => {
      given(running({ hooks: [hook('PostToolUse')] }), ...way)
        .when(callCancelled('a', {}, 'c', 'ada'), ...stop)
        .thenEvent('call_ended', {
          call_id: 'a',
          result: {
            content: [
              {
                type: 'text',
                text: 'Cancelled by ada after the tool had run. The result is withheld because hooks had not checked it.',
              },
            ],
            is_error: true,
          },
        });
    });

    test('leaves no open consult that could be taken for the next gate', () => {
      given(seen, callCancelled('a'), hooksCancelled)
        .when(asked(call('b', 'read')))
        .thenIncludes('hook_call gate_tool_calls gate_tool_calls')
        .thenNever('call_started b');
    });

    test('before the hooks see the result ends at once, without them', () => {
      const { session } = given(
        running({ hooks: [hook('PostToolUse')] }),
        asked(call('a', 'read'), call('b', 'read')),
        returned('b'),
        returned('a'),
      ).when(callCancelled('a', { inject_reminder: false }));
      expect(session.lines(5)).toEqual(['call_ended a cancelled', 'control_outcome cancel_call cancelled a']);
      expect(JSON.stringify(session.steps.at(-1)?.events)).not.toContain('result of a');
    });
  });

  test('on an ended or unknown call is not_found', () => {
    given(running(), asked(call('a', 'read'), call('b', 'read')), returned('a'))
      .when(callCancelled('a'))
      .thenJournal('control_outcome cancel_call not_found a')
      .when(callCancelled('z'))
      .thenJournal('control_outcome cancel_call not_found z');
  });

  test('after the run has ended is not_found', () => {
    given(one, returned('a'), answered(), toolsClosed)
      .when(callCancelled('a'))
      .thenJournal('control_outcome cancel_call not_found a');
  });

  test('followed by a cancel of the run records one result for the call', () => {
    given(one, callCancelled('a'), cancelled())
      .when(returned('a', 'cancelled'), toolsClosed)
      .thenIncludes('call_ended a cancelled', 'control_outcome cancel_call cancelled a', 'agent_end cancelled')
      .thenCount('call_ended a', 1);
  });

  test('keeps the session alive', () => {
    given(one, callCancelled('a'))
      .when(returned('a', 'cancelled'), answered(), toolsClosed)
      .thenIncludes('agent_end end_turn');
  });
});
