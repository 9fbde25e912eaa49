/**
 * The calls of a batch: in parallel or sequential, each with exactly one result.
 */
import type { CallOutcome } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { given } from './given.ts';
import { asked, call, hook, hooksSaid, type Move, returned, running } from './moves.ts';

const unknown = { args: null, problem: { code: 'unknown_tool', message: 'There is no such tool.' } };

describe('the calls of a batch', () => {
  test('start together, in one record, in call order', () => {
    given(running())
      .when(asked(call('a', 'read'), call('b', 'read'), call('c', 'read')))
      .thenIncludes('call_started a', 'call_started b', 'call_started c')
      .thenEffects('call_tool a', 'call_tool b', 'call_tool c');
  });

  test('may return in any order', () => {
    given(running(), asked(call('a', 'read'), call('b', 'read')))
      .when(returned('b'))
      .thenJournal('call_ended b ok')
      .when(returned('a'))
      .thenIncludes('call_ended a ok', 'loop_checkpoint post_tool_dispatch');
  });

  test('start up to parallel_calls; each end lets another start, with a pass of pre_tool_dispatch', () => {
    given(running({ parallelCalls: 2 }))
      .when(asked(call('a', 'read'), call('b', 'read'), call('c', 'read')))
      .thenEffects('call_tool a', 'call_tool b')
      .when(returned('b'))
      .thenJournal('call_ended b ok', 'loop_checkpoint pre_tool_dispatch', 'call_started c')
      .when(returned('a'))
      .thenJournal('call_ended a ok');
  });

  test('run sequentially if one tool of the batch is sequential', () => {
    given(running())
      .when(asked(call('a', 'read'), call('b', 'seq'), call('c', 'read')))
      .thenEffects('call_tool a')
      .when(returned('a'))
      .thenJournal('call_ended a ok', 'loop_checkpoint pre_tool_dispatch', 'call_started b')
      .when(returned('b'))
      .thenEffects('call_tool c');
  });

  test('count as running while hooks check their results', () => {
    given(running({ parallelCalls: 1, hooks: [hook('PostToolUse')] }), asked(call('a', 'read'), call('b', 'read')))
      .when(returned('a'))
      .thenNever('call_started b')
      .when(hooksSaid(undefined))
      .thenIncludes('call_ended a ok', 'loop_checkpoint pre_tool_dispatch', 'call_started b');
  });
});

describe('a call that can never run', () => {
  test('ends as an error immediately; the others run', () => {
    given(running())
      .when(asked(call('a', 'nosuch', unknown), call('b', 'read')))
      .thenJournal(
        'message_complete asks a b',
        'call_ended a error',
        'loop_checkpoint pre_tool_dispatch',
        'call_started b',
      )
      .thenEvent('call_ended', { call_id: 'a', is_error: true })
      .thenNever('call_started a');
  });

  test('alone in its batch leads to the next turn, in which the model may correct it', () => {
    given(running())
      .when(asked(call('a', 'nosuch', unknown)))
      .thenIncludes('call_ended a error', 'loop_checkpoint post_tool_dispatch', 'turn_end 1', 'turn_start 2');
  });

  test('is reported to the model with its problem', () => {
    given(running())
      .when(asked(call('a', 'nosuch', unknown)))
      .thenEvent('call_ended', {
        result: {
          content: [{ type: 'text', text: 'There is no such tool. The tool call was not run.' }],
          is_error: true,
          detail: { code: 'unknown_tool' },
        },
      });
  });
});

describe('the status of a call', () => {
  const one: Move = [running(), asked(call('a', 'read'))];

  test.each([
    ['ok', 'call_ended a ok'],
    ['error', 'call_ended a error'],
    // No command cancelled it: a tool that stops by itself has failed.
    ['cancelled', 'call_ended a error'],
    ['interrupted', 'call_ended a interrupted'],
  ] as const)('%s is recorded in its end, and the run continues', (status, line) => {
    given(one).when(returned('a', status)).thenIncludes(line, 'turn_start 2');
  });

  test('is an error by flag alone, or by status alone', () => {
    const content = [{ type: 'text' as const, text: 'x' }];
    given(one)
      .when(returned('a', 'ok', { result: { content, is_error: true } }))
      .thenEvent('call_ended', { status: 'error', is_error: true, result: { content, is_error: true } });
    given(one)
      .when(returned('a', 'error', { result: { content, is_error: false } }))
      .thenEvent('call_ended', { status: 'error', is_error: true, result: { content, is_error: true } });
  });

  test('is recorded once: a repeated outcome is late', () => {
    given(one).when(returned('a')).again().thenNothing('no open effect 3-0').thenCount('call_ended a', 1);
  });

  test('is taken only from the effect that is open under its id', () => {
    given(one)
      .when({ ...stray, effect_id: '99-0' })
      .thenNothing('no open effect 99-0')
      .when({ ...stray, call_id: 'z' })
      .thenNothing('no open effect 3-0');
  });
});

const stray: CallOutcome = {
  type: 'call_outcome',
  effect_id: '3-0',
  call_id: 'a',
  status: 'ok',
  result: { content: [], is_error: false },
  duration_ms: 0,
};

describe('an id that a model uses twice in one answer', () => {
  test('becomes two ids, so that each call has its own result', () => {
    const { session } = given(running())
      .when(asked(call('a', 'read'), call('a', 'ask'), call('a_2', 'read')))
      .thenIncludes('message_complete asks a a_3 a_2', 'approval_requested a_3', 'call_started a', 'call_started a_2');
    expect(session.state.context.calls.map((row) => row.call_id)).toEqual(['a', 'a_3', 'a_2']);
  });

  test('stays within the maximum length', () => {
    const long = 'x'.repeat(256);
    given(running())
      .when(asked(call(long, 'read'), call(long, 'read')))
      .thenCount('call_started', 2);
  });

  test('may be used again in a later turn', () => {
    given(running(), asked(call('a', 'read')), returned('a'))
      .when(asked(call('a', 'read')), returned('a'))
      .thenIncludes('call_started a', 'call_ended a ok');
  });
});
