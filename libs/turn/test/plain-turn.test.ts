import type { ModelOutcome } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { given } from './given.ts';
import {
  answered,
  asked,
  call,
  followedUp,
  type Move,
  prompted,
  provisioned,
  returned,
  running,
  started,
  toolsClosed,
} from './moves.ts';

test('a prompt starts a run and requests its provision', () => {
  given()
    .when(started())
    .thenJournal('prompt_received run 1')
    .thenState('provisioning.resolving')
    .thenEffects('provision');
});

test('a plain turn is two records: the answer with all events up to the call, the result with all events up to the next request', () => {
  given(running())
    .when(asked(call('c1', 'read')))
    .thenJournal('message_complete asks c1', 'loop_checkpoint pre_tool_dispatch', 'call_started c1')
    .thenEffects('call_tool c1')
    .when(returned('c1'))
    .thenJournal(
      'call_ended c1 ok',
      'loop_checkpoint post_tool_dispatch',
      'turn_end 1',
      'turn_start 2',
      'loop_checkpoint iteration_start',
      'loop_checkpoint pre_compact',
      'loop_checkpoint post_compact',
    )
    .thenEffects('call_model');
});

test('a run starts with its provision and the first request', () => {
  given(started())
    .when(provisioned())
    .thenJournal(
      'persona_changed',
      'tools_changed',
      'hooks_changed',
      'agent_start run 1',
      'turn_start 1',
      'loop_checkpoint iteration_start',
      'loop_checkpoint pre_compact',
      'loop_checkpoint post_compact',
    )
    .thenState('assistant_streaming.streaming');
});

test('usage is counted per turn, per run and per session', () => {
  const usage =
    (input: number, more: object = {}): Move =>
    (state) => ({
      ...(answered() as (from: typeof state) => ModelOutcome)(state),
      usage: { input_tokens: input, output_tokens: 1, ...more },
    });
  const { session } = given(running(), followedUp('f'))
    .when(usage(10, { cached_input_tokens: 4 }))
    .thenEvent('turn_end', { usage: { input_tokens: 10, output_tokens: 1, cached_input_tokens: 4 } })
    .when(usage(20, { cached_input_tokens: 1, reasoning_tokens: 3 }), toolsClosed)
    .thenEvent('turn_end', {
      usage: { input_tokens: 20, output_tokens: 1, cached_input_tokens: 1, reasoning_tokens: 3 },
    })
    .thenEvent('agent_end', {
      usage: { input_tokens: 30, output_tokens: 2, cached_input_tokens: 5, reasoning_tokens: 3 },
    })
    .when(prompted(), provisioned(), usage(5), toolsClosed)
    .thenEvent('agent_end', { usage: { input_tokens: 5, output_tokens: 1 } });
  expect(session.state.context.total_usage).toEqual({
    input_tokens: 35,
    output_tokens: 3,
    cached_input_tokens: 5,
    reasoning_tokens: 3,
  });
});

test('a plain answer ends the run: seams, turn, tools closed, then the end', () => {
  given(running())
    .when(answered('done'))
    .thenJournal('message_complete "done"', 'loop_checkpoint iteration_end', 'turn_end 1', 'loop_checkpoint loop_exit')
    .thenState('tearing_down.closing_tools')
    .thenEffects('close_tools')
    .when(toolsClosed)
    .thenJournal('tools_closed', 'agent_end end_turn')
    .thenState('stopped')
    .thenEffects();
});
