/**
 * Structured output: which answers are final, how they are repaired, and the output of a run.
 */
import { describe, expect, test } from 'vitest';
import { given, type Outcome } from './given.ts';
import {
  answeredOutput,
  asked,
  call,
  cancelled,
  followedUp,
  hook,
  hooksSaid,
  modelStopped,
  prompted,
  provisioned,
  returned,
  running,
  type Surroundings,
  steered,
  toolsClosed,
} from './moves.ts';

const TWICE: Surroundings = { outputRepairs: 2 };
const misfit = answeredOutput({ problems: ['total: must be number', "must have required property 'id'"] });
const fitting = answeredOutput({ value: { id: 1, total: 2 } });

/** The end of the last run. */
const endOf = ({ session }: Outcome) =>
  session.steps.flatMap(({ events }) => events).findLast((event) => event.type === 'agent_end');

describe('a final answer with a schema', () => {
  test('that fits is recorded in the end of the run', () => {
    const outcome = given(running(TWICE))
      .when(fitting, toolsClosed)
      .thenNever('output_rejected')
      .thenIncludes('agent_end end_turn');
    expect(endOf(outcome)).toMatchObject({ output: { id: 1, total: 2 } });
  });

  test('that does not fit is repaired by one more turn, which receives the problems', () => {
    const outcome = given(running(TWICE))
      .when(misfit, fitting, toolsClosed)
      .thenIncludes(
        'output_rejected repairs 0/2',
        'message_injected output:1 direct at output',
        'turn_end 1',
        'turn_start 2',
        'agent_end end_turn',
      )
      .thenCount('output_rejected', 1);
    const said = outcome.session.steps.flatMap(({ events }) => events).find(({ type }) => type === 'message_injected');
    expect(said).toMatchObject({
      message: { role: 'user', content: [{ text: expect.stringContaining('- total: must be number\n- must have') }] },
    });
  });

  test('costs no record of its own: the rejection and its message are in the record of the answer', () => {
    const { steps } = given(running(TWICE)).when(misfit).session;
    expect(steps.at(-1)?.events.map(({ type }) => type)).toEqual([
      'message_complete',
      'loop_checkpoint',
      'output_rejected',
      'message_injected',
      'turn_end',
      'turn_start',
      'loop_checkpoint',
      'loop_checkpoint',
      'loop_checkpoint',
    ]);
  });

  test('that never fits fails the run, with the problems of the last one', () => {
    const outcome = given(running(TWICE))
      .when(misfit, misfit, misfit, toolsClosed)
      .thenIncludes('output_rejected repairs 2/2', 'run_failed output output_invalid', 'agent_end error')
      .thenCount('output_rejected', 3)
      .thenCount('message_injected', 2);
    expect(endOf(outcome)).toMatchObject({
      error: { code: 'output_invalid', message: expect.stringContaining('after 2 repairs: total: must be number') },
    });
    expect(endOf(outcome)).not.toHaveProperty('output');
  });

  test('fails the run immediately if no repair is allowed', () => {
    given(running({ outputRepairs: 0 }))
      .when(misfit, toolsClosed)
      .thenIncludes('run_failed output output_invalid', 'agent_end error');
  });

  test('is repaired within max_turns, and the run ends there without an output', () => {
    const outcome = given(running({ ...TWICE, maxTurns: 2 }))
      .when(misfit, misfit, toolsClosed)
      .thenIncludes('turn_start 2', 'output_rejected repairs 1/2', 'agent_end max_turns')
      .thenCount('message_injected', 1);
    expect(endOf(outcome)).not.toHaveProperty('output');
  });

  test('is repaired within the budgets', () => {
    given(running({ ...TWICE, budgets: { tokens: 22 } }))
      .when(misfit, misfit, toolsClosed)
      .thenIncludes('output_rejected repairs 0/2', 'agent_end budget_exceeded');
  });

  test('of a new prompt has all repairs again, and no output yet', () => {
    const outcome = given(running(TWICE), misfit, fitting, toolsClosed)
      .when(prompted(), provisioned(TWICE), misfit, misfit, cancelled(), modelStopped(), toolsClosed)
      .thenIncludes('output_rejected repairs 0/2', 'output_rejected repairs 1/2', 'agent_end cancelled');
    expect(endOf(outcome)).not.toHaveProperty('output');
  });
});

describe('an answer is not final', () => {
  test('if it contains calls', () => {
    given(running(TWICE))
      .when(asked(call('a', 'read')), returned('a'), fitting)
      .thenNever('output_rejected');
  });

  test('if a steer is delivered after it: the next one is', () => {
    given(running(TWICE))
      .when(steered('m'), misfit)
      .thenIncludes('loop_checkpoint iteration_end delivers m', 'turn_end 1', 'turn_start 2')
      .thenNever('output_rejected');
  });

  test('in a step before the last', () => {
    const step = (name: string) => ({ name, prompt: `Do ${name}.`, error_boundary: 'fail' as const });
    given(running({ ...TWICE, steps: [step('plan'), step('write')] }))
      .when(misfit, misfit, fitting, toolsClosed)
      .thenIncludes(
        'step_finished plan completed',
        'step_started write',
        'output_rejected repairs 0/2',
        'turn_start 3',
        'step_finished write completed',
        'agent_end end_turn',
      )
      .thenCount('output_rejected', 1);
  });
});

describe('a repair', () => {
  test('can be steered', () => {
    given(running(TWICE), misfit)
      .when(steered('m'), misfit, fitting, toolsClosed)
      .thenIncludes('loop_checkpoint iteration_end delivers m', 'turn_start 3', 'agent_end end_turn');
  });

  test('precedes a follow-up, which has all repairs again', () => {
    given(running(TWICE), followedUp('f'))
      .when(misfit, fitting, misfit, fitting, toolsClosed)
      .thenIncludes(
        'message_injected output:1 direct at output',
        'turn_start 2',
        'message_injected f followup at steering_check',
        'output_rejected repairs 0/2',
        'agent_end end_turn',
      );
  });

  test('precedes a stop condition, which ends the run with the answer that fits', () => {
    const outcome = given(running({ ...TWICE, stopWhen: [{ text: 'total' }, { text: 'no JSON' }] }))
      .when(misfit, fitting, toolsClosed)
      .thenIncludes(
        'stop_condition_held text no JSON',
        'output_rejected repairs 0/2',
        'turn_start 2',
        'agent_end stop_condition',
      );
    expect(endOf(outcome)).toMatchObject({ output: { id: 1 } });
  });

  test('waits for the hooks after the turn', () => {
    given(running({ ...TWICE, hooks: [hook('post_turn')] }))
      .when(misfit)
      .thenNever('output_rejected')
      .when(hooksSaid(undefined))
      .thenIncludes('output_rejected repairs 0/2', 'turn_start 2');
  });

  test('is counted again for each job of a daemon', () => {
    given(running({ outputRepairs: 1, daemon: true }))
      .when(misfit, fitting, followedUp('f'), misfit)
      .thenIncludes('output_rejected repairs 0/1', 'output_rejected repairs 0/1');
  });
});
