/**
 * Compaction: its conditions, the kept messages, failures, and prompts that the provider refuses as too long.
 */
import type { SessionEvent } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { messageCount } from '../src/mod.ts';
import { given } from './given.ts';
import {
  answered,
  answeredAt,
  askedAt,
  call,
  cancelled,
  compacted,
  Failing,
  followedUp,
  hook,
  hooksCancelled,
  hooksSaid,
  type Move,
  notCompacted,
  overflowed,
  owned,
  prompted,
  provisioned,
  returned,
  running,
  steered,
  toolsClosed,
} from './moves.ts';

const LONG = { result: { content: [{ type: 'text' as const, text: 'x'.repeat(500) }], is_error: false } };
/** A turn with one call and an answer with this number of tokens. */
const turn = (tokens: number, id = 'a', more = {}): Move => [
  askedAt(tokens, call(id, 'read')),
  returned(id, 'ok', more),
];
const small = { compaction: {} };

describe('a compaction is due', () => {
  test('when the estimate exceeds the window minus the reserve, between its two seams', () => {
    given(running(small))
      .when(turn(85))
      .thenIncludes('turn_start 2', 'loop_checkpoint pre_compact', 'compaction_started window summary keeps 0')
      .thenNever('compaction_done')
      .thenState('assistant_streaming.compacting')
      .thenEffects('compact')
      .when(compacted())
      .thenJournal('compaction_done window summary keeps 0 archives 3 leaves 1', 'loop_checkpoint post_compact')
      .thenEffects('call_model');
  });

  test('not when it only equals it: messages after the last report are estimated and added', () => {
    // The result of 11 characters adds 3 tokens and 4 for its message.
    given(running(small)).when(turn(73)).thenNever('compaction_started').thenEffects('call_model');
    given(running(small)).when(turn(74)).thenCount('compaction_started', 1);
  });

  test('not while there is nothing before the kept turns', () => {
    given(running({ compaction: { keep_turns: 2 } }))
      .when(turn(90))
      .thenNever('compaction_started')
      .when(turn(90, 'b'))
      .thenNever('compaction_started')
      .when(turn(90, 'c'))
      .thenIncludes('compaction_started window summary keeps 2');
  });

  test('not in a run without compaction settings, as in older journals', () => {
    given(running()).when(turn(1_000_000)).thenNever('compaction_started').thenEffects('call_model');
  });

  test('once per turn, and after an insufficient one only when the prompt has grown', () => {
    const around = { compaction: { window: 1_000, reserve: 200 } };
    given(running(around), turn(900), compacted('x'.repeat(4_000)))
      .when(turn(860, 'b'))
      .thenNever('compaction_skipped')
      .thenCount('compaction_started', 1)
      .when(turn(2_500, 'c'))
      .thenCount('compaction_started', 2);
  });

  test('also by texts without a reported size: messages, the system prompt and tools are estimated', () => {
    const silent = { input_tokens: 0, output_tokens: 0 };
    const quiet: Move = (state) => {
      const move = answered('x'.repeat(400));
      return { ...(move as (s: typeof state) => object)(state), usage: silent } as never;
    };
    given(running({ compaction: { window: 150, reserve: 20 } }), steered('s1'))
      .when(quiet)
      .thenIncludes('turn_start 2')
      .thenCount('compaction_started', 1);
  });
});

describe('a compaction keeps', () => {
  test('the last turns, and every steer of the run', () => {
    given(running({ compaction: { keep_turns: 1 } }), steered('s1'), turn(50), steered('s2'))
      .when(turn(90, 'b'))
      .when(compacted())
      .thenJournal('compaction_done window summary keeps 1 archives 3 leaves 5', 'loop_checkpoint post_compact');
  });

  test('stubs of results, with the strategy clear_tool_results: no model is called', () => {
    given(running({ compaction: { strategy: 'clear_tool_results' } }))
      .when(turn(90, 'a', LONG))
      .thenIncludes(
        'loop_checkpoint pre_compact',
        'compaction_done window clear_tool_results keeps 0 archives 1 leaves 3',
        'loop_checkpoint post_compact',
      )
      .thenEffects('call_model');
  });

  test('short results, which are no longer than a stub', () => {
    given(running({ compaction: { strategy: 'clear_tool_results' } }))
      .when(turn(90))
      .thenNever('compaction_done')
      .thenEffects('call_model');
  });

  test('the cost of its model step as a part of the run', () => {
    given(running(small), turn(90), compacted())
      .when(answered(), toolsClosed)
      .thenEvent('agent_end', { usage: { input_tokens: 89 + 7 + 10, output_tokens: 1 + 3 + 1 } });
  });
});

describe('a model step that fails', () => {
  test('falls back to clearing old results', () => {
    given(running(small), turn(90, 'a', LONG))
      .when(notCompacted())
      .thenJournal(
        'compaction_done window clear_tool_results keeps 0 archives 1 leaves 3 instead of summary: model_unavailable',
        'loop_checkpoint post_compact',
      );
  });

  test('keeps the view if there is nothing to clear', () => {
    given(running(small), turn(90))
      .when(notCompacted())
      .thenJournal('compaction_skipped window model_unavailable', 'loop_checkpoint post_compact')
      .thenEffects('call_model');
  });

  test('without text counts as failed', () => {
    given(running(small), turn(90)).when(compacted(' \n ')).thenIncludes('compaction_skipped window summary_empty');
  });

  test('is not repeated in every turn', () => {
    given(running(small), turn(90), notCompacted())
      .when(turn(88, 'b'))
      .thenCount('compaction_started', 1)
      .when(turn(110, 'c'))
      .thenCount('compaction_started', 2);
  });

  test('is restarted by the next owner, up to a bound', () => {
    const owners = Array.from({ length: 10 }, (_, index) => owned(index + 2));
    given(running(small), turn(90), ...owners)
      .when(owned(12))
      .thenJournal('owned 12', 'compaction_skipped window model_restarts_exhausted', 'loop_checkpoint post_compact');
  });

  test('with a late outcome changes nothing', () => {
    given(running(small), turn(90), compacted())
      .when({
        type: 'compact_outcome',
        effect_id: '4-0',
        status: 'complete',
        text: 'late',
        usage: { input_tokens: 0, output_tokens: 0 },
        attempts: 1,
        duration_ms: 0,
      })
      .thenNothing();
  });

  test('is aborted with the run, and its cost is counted', () => {
    given(running(small), turn(90))
      .when(cancelled())
      .thenEffects('compact aborted')
      .when(compacted())
      .thenJournal('compaction_skipped window compaction_aborted', 'turn_end 2', 'loop_checkpoint loop_exit')
      .thenEvent('turn_end', { usage: { input_tokens: 7, output_tokens: 3 } });
  });
});

describe('hooks', () => {
  const hooked = (...points: Parameters<typeof hook>[0][]) => ({ ...small, hooks: points.map((point) => hook(point)) });

  test('are not called if there is nothing to compact', () => {
    given(running(hooked('pre_compact', 'post_compact')))
      .when(turn(20))
      .thenNever('hook_call');
  });

  test('are called before and after a compaction', () => {
    given(running(hooked('pre_compact', 'post_compact')))
      .when(turn(90))
      .thenEvent('hook_call', {
        payload: {
          event: 'pre_compact',
          session: { id: 's1' },
          persona: 'coder',
          turn: 2,
          mode: 'window',
          strategy: 'summary',
          message_count: 3,
          estimated_tokens: 97,
        },
      })
      .when(hooksSaid(undefined), compacted())
      .thenIncludes('compaction_done window summary keeps 0 archives 3 leaves 1', 'hook_call post_compact post_compact')
      .thenNever('loop_checkpoint post_compact 2')
      .thenEvent('hook_call', {
        payload: expect.objectContaining({ archived: 3, remaining: 1, message_count: 1 }) as never,
      })
      .when(hooksSaid(undefined))
      .thenIncludes('consult_ended post_compact', 'loop_checkpoint post_compact')
      .thenEffects('call_model');
  });

  test.each([
    ['a veto', { block: true, reason: 'no' }],
    ['false', false],
    ['a failure that fails closed', new Failing()],
  ])('%s skips this compaction, and the next turn decides again', (_, said) => {
    given(running(hooked('pre_compact')), turn(90))
      .when(hooksSaid(said))
      .thenIncludes(
        'hook_vetoed pre_compact pre_compact block',
        'consult_ended pre_compact',
        'loop_checkpoint post_compact',
      )
      .thenNever('compaction_started')
      .thenEffects('call_model')
      .when(turn(95, 'b'))
      .thenCount('hook_call pre_compact', 2);
  });

  test('a failure with fail-open is not a veto', () => {
    given(running({ ...small, hooks: [hook('pre_compact', 'pre', { on_error: 'fail_open' })] }), turn(90))
      .when(hooksSaid(new Failing()))
      .thenIncludes('compaction_started window summary keeps 0');
  });

  test('aborted by a cancel refuse nothing', () => {
    given(running(hooked('pre_compact')), turn(90))
      .when(cancelled(), hooksCancelled)
      .thenNever('hook_vetoed', 'run_failed');
  });

  test('at transform_context are called before every answer', () => {
    given(running(hooked('transform_context')))
      .when(hooksSaid({ messages: [{ role: 'user', content: [{ type: 'text', text: 'only this' }] }] }))
      .thenJournal(
        'hook_returned transform_context transform_context replace_messages',
        'consult_ended transform_context',
      )
      .thenEffects('call_model')
      .when(turn(20))
      .thenIncludes('loop_checkpoint post_compact', 'hook_call transform_context transform_context')
      .thenEffects('consult transform_context');
  });

  test('at transform_context with fail-closed end the run: it is unknown what they would have removed', () => {
    given(running(hooked('transform_context')))
      .when(hooksSaid(new Failing()))
      .thenIncludes('run_failed model hook_timeout', 'turn_end 1')
      .thenNever('message_complete');
  });

  test('at transform_context with fail-open change nothing', () => {
    given(running({ ...small, hooks: [hook('transform_context', 't', { on_error: 'fail_open' })] }))
      .when(hooksSaid(new Failing()))
      .thenNever('run_failed')
      .thenEffects('call_model');
  });
});

describe('a prompt that the provider refuses as too long', () => {
  // `given` validates every event: a record with a negative size could not be read again.
  test('has a size of at least 0, also if the estimate of removed tools exceeds the report of the provider', () => {
    given(running(small), turn(20), answeredAt(21), toolsClosed, prompted(), provisioned({ ...small, tools: [] }))
      .when(overflowed())
      .thenIncludes('context_overflowed 1', 'compaction_started overflow summary keeps 0')
      .when(compacted())
      .thenIncludes('compaction_done overflow summary keeps 0 archives 4 leaves 2');
  });

  test('is compacted regardless of the estimate, and sent once more in the same turn', () => {
    given(running(small), turn(20))
      .when(overflowed())
      .thenJournal('context_overflowed 2', 'loop_checkpoint pre_compact', 'compaction_started overflow summary keeps 0')
      .when(compacted())
      .thenIncludes('compaction_done overflow summary keeps 0 archives 3 leaves 1', 'loop_checkpoint post_compact')
      .thenEffects('call_model')
      .when(answered())
      .thenIncludes('message_complete "fine"')
      .thenCount('turn_start', 2);
  });

  test('keeps fewer turns than configured only if there is nothing older', () => {
    given(running({ compaction: { keep_turns: 2 } }), turn(20), turn(20, 'b'), turn(20, 'c'))
      .when(overflowed())
      .thenIncludes('compaction_started overflow summary keeps 2');
    given(running({ compaction: { keep_turns: 2 } }), turn(20), turn(20, 'b'))
      .when(overflowed())
      .thenIncludes('compaction_started overflow summary keeps 1');
  });

  test('ends the run the second time', () => {
    given(running(small), turn(20), overflowed(), compacted())
      .when(overflowed())
      .thenIncludes('run_failed model context_overflow', 'turn_end 2')
      .thenEvent('run_failed', {
        error: { code: 'context_overflow', message: 'too long (the compaction did not free enough space)' },
      });
  });

  test('may occur again in a later turn', () => {
    given(running(small), turn(20), overflowed(), compacted(), turn(10, 'b'))
      .when(overflowed())
      .thenIncludes('context_overflowed 3', 'compaction_started overflow summary keeps 0');
  });

  test('lowers the window: later prompts are compacted before this size, with the reserve in proportion', () => {
    const around = { compaction: { window: 1_000, reserve: 200, keep_turns: 0 } };
    const { state } = given(running(around), turn(400), overflowed());
    const refusedAt = state.context.view.refused_at;
    expect(refusedAt).toBe(407);
    // A fifth is reserved, as configured: 325 of 407.
    const reserve = Math.ceil(refusedAt / 5);
    given(running(around), turn(400), overflowed(), compacted(), turn(refusedAt - reserve - 7, 'b'))
      .when()
      .thenCount('compaction_started', 1);
    given(running(around), turn(400), overflowed(), compacted())
      .when(turn(refusedAt - reserve - 6, 'b'))
      .thenIncludes('compaction_started window summary keeps 0')
      .thenEvent('compaction_started', { window: refusedAt, reserve });
  });

  test('keeps the smallest refused size, and ignores one that exceeded the window anyway', () => {
    const around = { compaction: { window: 1_000, reserve: 200, keep_turns: 0 } };
    const twice = given(running(around), turn(400), overflowed(), compacted(), turn(200, 'b'), overflowed());
    expect(twice.state.context.view.refused_at).toBe(207);
    const { session } = given(
      running({ compaction: { window: 300, reserve: 0, keep_turns: 1 } }),
      turn(10),
      turn(400, 'b'),
    ).when();
    session.make(compacted(), overflowed());
    expect(session.steps.at(-1)?.events).toContainEqual(expect.objectContaining({ window: 300 }));
  });

  test('loses the learned window with a new persona and model', () => {
    const around = { compaction: { window: 1_000, reserve: 200, keep_turns: 0 } };
    const { state } = given(
      running(around),
      turn(400),
      overflowed(),
      compacted(),
      answered(),
      toolsClosed,
      prompted(),
      provisioned({ ...around, maxTurns: 7 }),
    );
    expect(state.context.view.refused_at).toBe(0);
  });

  test('ends the run immediately if there is nothing to compact', () => {
    given(running(small))
      .when(overflowed())
      .thenNever('context_overflowed')
      .thenEvent('run_failed', {
        error: { code: 'context_overflow', message: 'too long (no older messages are left to compact)' },
      });
  });

  test('ends the run if a hook vetoes the compaction', () => {
    given(running({ ...small, hooks: [hook('pre_compact')] }), turn(20), overflowed())
      .when(hooksSaid({ block: true }))
      .thenIncludes('hook_vetoed pre_compact pre_compact block', 'run_failed model context_overflow');
  });

  test('ends the run if there is neither a summary nor a result to clear', () => {
    given(running(small), turn(20), overflowed())
      .when(notCompacted())
      .thenIncludes('compaction_skipped overflow model_unavailable', 'run_failed model context_overflow');
  });

  test('after a part of the answer is a broken answer like any other', () => {
    given(running(small), turn(20))
      .when(overflowed('I was about'))
      .thenIncludes('message_complete partial "I was about"', 'run_failed model context_overflow')
      .thenNever('context_overflowed')
      .thenEvent('run_failed', {
        error: {
          code: 'context_overflow',
          message: 'too long (the answer has started, so the request is not repeated)',
        },
      });
  });

  test('in a run without compaction ends the run', () => {
    given(running(), turn(20))
      .when(overflowed())
      .thenNever('context_overflowed')
      .thenEvent('run_failed', {
        error: { code: 'context_overflow', message: 'too long (the run has no compaction)' },
      });
  });

  test('while the run is cancelled has no effect', () => {
    given(running(small), turn(20), cancelled()).when(overflowed()).thenNever('context_overflowed', 'run_failed');
  });
});

test('a follow-up belongs to the turn that it starts: it is kept with it', () => {
  given(running({ compaction: { keep_turns: 1 } }), followedUp('f1'), answeredAt(20))
    .when(turn(20, 'a'))
    .when(turn(90, 'b'))
    .thenIncludes('compaction_started window summary keeps 1');
});

test('the view account counts the messages of the journal', () => {
  const { session } = given(running({ compaction: { keep_turns: 1 } }), steered('s1'), turn(50), turn(90, 'b')).when(
    compacted(),
    turn(60, 'c'),
  );
  const events = session.steps.flatMap((step) => step.events);
  expect(messageCount(session.state.context.view)).toBe(countOf(events));
});

/** Messages of the view by the events alone: all messages, minus those that compactions removed. */
function countOf(events: readonly SessionEvent[]): number {
  let count = 0;
  for (const event of events) {
    if (event.type === 'prompt_received') count += event.messages.length;
    if (event.type === 'message_complete' || event.type === 'call_ended' || event.type === 'message_injected') count++;
    if (event.type !== 'compaction_done') continue;
    count += 1 - event.archived;
    expect(event.remaining).toBe(count);
  }
  return count;
}
