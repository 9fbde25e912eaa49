/**
 * Declared steps of a persona: their order, their ends, the effects of hooks, and the effects of failures.
 */
import type { Step } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { given, type Outcome } from './given.ts';
import {
  answered,
  asked,
  call,
  cancelled,
  Failing,
  followedUp,
  hook,
  hooksChanged,
  hooksSaid,
  modelFailed,
  owned,
  prompted,
  provisioned,
  resumed,
  returned,
  running,
  type Surroundings,
  steered,
  suspended,
  takenOver,
  toolsClosed,
  using,
} from './moves.ts';

const step = (name: string, more: Partial<Step> = {}): Step => ({
  name,
  prompt: `Do ${name}.`,
  error_boundary: 'fail',
  ...more,
});
const TWO: Surroundings = { steps: [step('plan'), step('write')] };
const price = {
  pattern: '*',
  input_micro_usd: 1_000_000,
  output_micro_usd: 1_000_000,
  cached_input_micro_usd: 1_000_000,
};

/** The instructions for the model, in order. */
const instructions = (outcome: Outcome): string[] =>
  outcome.session.steps
    .flatMap(({ events }) => events)
    .flatMap((event) =>
      event.type === 'message_injected' && event.seam === 'step'
        ? [event.message.content.map((part) => ('text' in part ? part.text : '')).join('')]
        : [],
    );

describe('steps', () => {
  test('run in order, each with its task for the model at its start, in one run', () => {
    const outcome = given()
      .when(running(TWO), asked(call('a', 'read')), returned('a'), answered(), answered(), toolsClosed)
      .thenIncludes(
        'agent_start run 1',
        'step_started plan',
        'message_injected step:plan direct at step',
        'turn_start 1',
        'turn_end 1',
        'turn_start 2',
        'message_complete "fine"',
        'step_finished plan completed',
        'turn_end 2',
        'step_started write',
        'message_injected step:write direct at step',
        'turn_start 3',
        'step_finished write completed',
        'turn_end 3',
        'agent_end end_turn',
      )
      .thenCount('step_started', 2);
    expect(instructions(outcome)).toEqual(['Step 1 of 2: plan\n\nDo plan.', 'Step 2 of 2: write\n\nDo write.']);
  });

  test('start within the record that ends the previous one: a step costs no record of its own', () => {
    const { steps } = given().when(running(TWO), answered()).session;
    expect(steps.at(-1)?.events.map(({ type }) => type)).toEqual(
      expect.arrayContaining(['step_finished', 'turn_end', 'step_started', 'turn_start']),
    );
  });

  test('do not exist for a persona that declares none', () => {
    given(running()).when(answered(), toolsClosed).thenNever('step_started', 'step_finished');
  });

  test('stay open while messages of the last seam are to be answered', () => {
    given(running(TWO), steered('s1'))
      .when(answered())
      .thenIncludes('loop_checkpoint iteration_end delivers s1', 'turn_end 1', 'turn_start 2')
      .thenNever('step_finished')
      .when(answered())
      .thenIncludes('step_finished plan completed', 'step_started write');
  });

  test('restart with a follow-up, which is delivered after all of them, and with each run', () => {
    given(running(TWO), followedUp('f1'), answered())
      .when(answered())
      .thenIncludes(
        'step_finished write completed',
        'message_injected f1 followup at steering_check',
        'step_started plan',
      )
      .when(answered(), answered(), toolsClosed, prompted())
      .thenState('provisioning.resolving');
  });

  test('restart with each job of a daemon', () => {
    given(running({ ...TWO, daemon: true }), answered(), answered())
      .when(steered('s1'))
      .thenIncludes('step_started plan', 'loop_checkpoint iteration_start delivers s1');
  });

  test('wait while the session is suspended between them, and continue with the next', () => {
    given(running(TWO), suspended())
      .when(answered())
      .thenIncludes('step_finished plan completed', 'suspended suspend-1')
      .thenNever('step_started write')
      .when(resumed())
      .thenIncludes('step_started write');
  });

  test.each([
    ['a cancel', cancelled(), 'agent_end cancelled'],
    ['a host’s failure', [owned(2), cancelled()], 'agent_end cancelled'],
  ])('ended by %s are unfinished, once', (_name, move, end) => {
    given(running(TWO), asked(call('a', 'read')))
      .when(move, returned('a', 'cancelled'), toolsClosed)
      .thenIncludes('step_finished plan unfinished', 'turn_end 1', end)
      .thenCount('step_finished', 1);
  });

  test('left by the last turn are unfinished, and the run says so', () => {
    given(running({ ...TWO, maxTurns: 1 }))
      .when(answered(), toolsClosed)
      .thenIncludes('step_finished plan completed', 'turn_end 1', 'agent_end max_turns')
      .thenNever('step_started write');
  });

  test('ended by a terminating tool are unfinished', () => {
    given(running(TWO), asked(call('a', 'done')))
      .when(returned('a'), toolsClosed)
      .thenIncludes('step_finished plan unfinished', 'agent_end terminated');
  });
});

describe('a budget of a step', () => {
  const within = (more: Partial<Step>, last = 'fail' as Step['error_boundary']): Surroundings => ({
    steps: [step('plan', { error_boundary: last, ...more }), step('write')],
    price,
  });

  test.each<[string, Partial<Step>]>([
    ['max_tokens', { max_tokens: 100 }],
    ['max_usd', { max_usd: 0.000_1 }],
  ])('%s ends a run without an answer cleanly', (_name, budget) => {
    given(running(within(budget)), using(90, 10, asked(call('a', 'read'))))
      .when(returned('a'), toolsClosed)
      .thenIncludes(
        'step_finished plan failed step_budget_exceeded: fail',
        'run_failed step step_budget_exceeded',
        'turn_end 1',
        'agent_end budget_exceeded',
      )
      .thenEvent('step_finished', { tokens: 100, cost_usd: 0.000_1 });
  });

  test('does not remove an answer that has arrived', () => {
    given(running(within({ max_tokens: 10 })))
      .when(using(90, 10, answered()))
      .thenIncludes('step_finished plan completed', 'step_started write');
  });

  test('counts the usage of the step itself', () => {
    given(running({ steps: [step('plan'), step('write', { max_tokens: 100 })] }), using(500, 10, answered()))
      .when(using(80, 10, asked(call('a', 'read'))), returned('a'))
      .thenIncludes('turn_start 3')
      .thenNever('step_finished write');
  });

  test('with the boundary continue proceeds with the next step, which is informed', () => {
    const outcome = given(running(within({ max_tokens: 100 }, 'continue')), using(90, 10, asked(call('a', 'read'))))
      .when(returned('a'))
      .thenIncludes('step_finished plan failed step_budget_exceeded: continue', 'turn_end 1', 'step_started write');
    expect(instructions(outcome).at(-1)).toBe(
      'Step 2 of 2: write\n\nStep plan failed and was skipped: the step plan used up its budget: 100 of 100 tokens\n\nDo write.',
    );
  });

  test('of the last step, with the boundary continue, ends the run as with an answer', () => {
    given(running({ steps: [step('plan', { max_tokens: 10, error_boundary: 'continue' })] }), asked(call('a', 'read')))
      .when(returned('a'), toolsClosed)
      .thenIncludes('turn_end 1', 'agent_end end_turn')
      .thenNever('turn_start 2');
  });
});

describe('a model that fails in a step', () => {
  const bounded = (error_boundary: Step['error_boundary']): Surroundings => ({
    steps: [step('plan', { error_boundary }), step('write')],
  });

  test('fails the run at the boundary fail', () => {
    given(running(bounded('fail')))
      .when(modelFailed('half'), toolsClosed)
      .thenIncludes(
        'message_complete partial "half"',
        'step_finished plan failed model_unavailable: fail',
        'run_failed model model_unavailable',
        'agent_end error',
      )
      .thenCount('step_finished', 1);
  });

  test('is skipped at the boundary continue', () => {
    given(running(bounded('continue')))
      .when(modelFailed())
      .thenIncludes(
        'step_finished plan failed model_unavailable: continue',
        'turn_end 1',
        'step_started write',
        'turn_start 2',
      )
      .thenNever('run_failed')
      .when(answered(), toolsClosed)
      .thenIncludes('agent_end end_turn');
  });

  test('at the boundary escalate suspends the session; a resume restarts the step', () => {
    const outcome = given(running(bounded('escalate')))
      .when(modelFailed())
      .thenIncludes('step_finished plan failed model_unavailable: escalate', 'turn_end 1', 'suspended')
      .thenEvent('suspended', { reason: 'the step plan failed: gone' })
      .thenState('suspended.parked')
      .thenEffects()
      .when(resumed())
      .thenIncludes('resumed command resume-1', 'step_started plan attempt 2', 'turn_start 2')
      .thenEffects('call_model');
    expect(instructions(outcome).at(-1)).toBe(
      'Step 1 of 2: plan, attempt 2\n\nThe previous attempt of this step failed: gone\n\nDo plan.',
    );
  });

  test('that was escalated may be cancelled instead', () => {
    given(running(bounded('escalate')), modelFailed())
      .when(cancelled(), toolsClosed)
      .thenIncludes('agent_end cancelled')
      .thenCount('step_finished', 1);
  });

  test('an interrupt resumes an escalated step, too', () => {
    given(running(bounded('escalate')), modelFailed())
      .when(steered('s1', 'interrupt_immediate'))
      .thenIncludes(
        'resumed interrupt s1',
        'step_started plan attempt 2',
        'loop_checkpoint iteration_start delivers s1',
      );
  });

  test('an escalated step waits for a person although a call or a command asked for another suspension', () => {
    const around = { steps: [step('plan', { error_boundary: 'escalate', max_tokens: 5 }), step('write')] };
    const reason = 'the step plan failed: the step plan used up its budget: 11 of 5 tokens';
    const parked = { type: 'suspended', reason };
    const suspensions = (outcome: Outcome) =>
      outcome.session.steps.flatMap(({ events }) => events.filter(({ type }) => type === 'suspended'));
    const parks = returned('a', 'ok', { park: { for_ms: 1_000 } });
    const byCall = given(running(around), asked(call('a', 'read')), steered('m'))
      .when(parks)
      .thenEffects();
    expect(suspensions(byCall)).toEqual([parked]);
    const hooks = [hook('pre_suspend')];
    const byCommand = given(running({ ...around, hooks }), asked(call('a', 'read')), suspended('s', { for_ms: 1_000 }))
      .when(returned('a'))
      .thenEffects();
    expect(suspensions(byCommand)).toEqual([{ ...parked, command_id: 's' }]);
  });

  test('an escalated step waits for a person although an interrupt came after an earlier request', () => {
    const interrupted = steered('m', 'interrupt_immediate');
    for (const before of [[interrupted], [suspended('s'), interrupted]])
      given(running(bounded('escalate')), ...before)
        .when(modelFailed())
        .thenIncludes('loop_checkpoint iteration_end delivers m')
        .thenNever('resumed')
        .thenState('suspended.parked');
  });

  test('no pre_suspend hook is called for a suspension without a request', () => {
    given(running({ ...bounded('escalate'), hooks: [hook('pre_suspend')] }))
      .when(modelFailed())
      .thenNever('hook_call')
      .thenState('suspended.parked');
  });
});

describe('PreStep hooks', () => {
  const hooked = (error_boundary: Step['error_boundary'] = 'fail', more: object = {}): Surroundings => ({
    steps: [step('plan', { error_boundary }), step('write')],
    hooks: [hook('PreStep', 'pre', { pattern: 'coder.plan', ...more })],
  });

  test('are called before the model, with the task', () => {
    given()
      .when(running(hooked()))
      .thenIncludes('step_started plan', 'hook_call pre PreStep')
      .thenEvent('hook_call', {
        payload: {
          event: 'PreStep',
          session: { id: 's1' },
          persona: 'coder',
          turn: 0,
          step: { name: 'plan', args: { prompt: 'Do plan.' } },
        },
      })
      .thenState('assistant_streaming.pre_step')
      .when(hooksSaid(undefined))
      .thenIncludes('consult_ended PreStep', 'message_injected step:plan direct at step', 'turn_start 1');
  });

  test('may rewrite the task', () => {
    const outcome = given(running(hooked()))
      .when(hooksSaid({ args: { prompt: 'Do less.' } }))
      .thenIncludes('step_args_rewritten plan by hook:pre', 'turn_start 1');
    expect(instructions(outcome)).toEqual(['Step 1 of 2: plan\n\nDo less.']);
  });

  test.each<[string, unknown]>([
    ['a refusal', { deny: 'not now' }],
    ['arguments that no step has', { args: { promt: 'x' } }],
    ['a failure', new Failing()],
  ])('%s fails the step, with its boundary', (_name, said) => {
    given(running(hooked('fail')))
      .when(hooksSaid(said), toolsClosed)
      .thenIncludes('hook_vetoed pre PreStep deny', 'step_finished plan failed step_denied: fail', 'agent_end error')
      .thenNever('turn_start');
    given(running(hooked('continue')))
      .when(hooksSaid(said))
      .thenIncludes('step_finished plan failed step_denied: continue', 'step_started write', 'turn_start 1');
    given(running(hooked('escalate')))
      .when(hooksSaid(said))
      .thenIncludes('step_finished plan failed step_denied: escalate', 'suspended')
      .thenState('suspended.parked')
      .when(resumed())
      .thenIncludes('step_started plan attempt 2', 'hook_call pre PreStep');
  });

  test('a step denied each time is resumed once by an interrupt, and sleeps until a new message', () => {
    given(running(hooked('escalate')), hooksSaid({ deny: 'not now' }))
      .when(steered('i1', 'interrupt_immediate'))
      .thenIncludes('resumed interrupt i1', 'step_started plan attempt 2')
      .when(hooksSaid({ deny: 'not now' }))
      .thenIncludes('step_finished plan failed step_denied: escalate', 'suspended')
      .thenCount('resumed', 1)
      .thenState('suspended.parked')
      .when(steered('i2', 'interrupt_immediate'))
      .thenIncludes('resumed interrupt i2', 'step_started plan attempt 3')
      .when(hooksSaid(undefined))
      .thenIncludes('loop_checkpoint iteration_start delivers i1 i2');
  });

  test('that refuse the only step leave nothing to do', () => {
    const only = { steps: [step('plan', { error_boundary: 'continue' })], hooks: [hook('PreStep', 'pre')] };
    given(running(only as Surroundings))
      .when(hooksSaid({ deny: 'no' }), toolsClosed)
      .thenIncludes('agent_end end_turn')
      .thenNever('turn_start');
  });

  test('of other steps are not called', () => {
    given()
      .when(running(hooked('fail', { pattern: '*', step: 'write' })))
      .thenNever('hook_call')
      .when(answered())
      .thenIncludes('step_started write', 'hook_call pre PreStep');
  });

  test('are no longer waited for once the run is cancelled', () => {
    given(running(hooked()))
      .when(cancelled())
      .thenEffects('consult PreStep aborted')
      .when(hooksSaid({ deny: 'late' }), toolsClosed)
      .thenIncludes('step_finished plan unfinished', 'agent_end cancelled')
      .thenCount('step_finished', 1);
  });
});

describe('PostStep hooks', () => {
  const hooked = (error_boundary: Step['error_boundary'] = 'fail'): Surroundings => ({
    steps: [step('plan', { error_boundary }), step('write')],
    hooks: [hook('PostStep', 'post', { step: 'plan' })],
  });

  test('get the answer before the step ends', () => {
    given(running(hooked()))
      .when(answered('a plan'))
      .thenIncludes('loop_checkpoint iteration_end', 'hook_call post PostStep')
      .thenEvent('hook_call', {
        payload: {
          event: 'PostStep',
          session: { id: 's1' },
          persona: 'coder',
          turn: 1,
          step: { name: 'plan', args: { prompt: 'Do plan.' }, output: 'a plan' },
        },
      })
      .thenNever('step_finished')
      .thenState('steering_check.post_step')
      .when(hooksSaid(undefined))
      .thenIncludes('consult_ended PostStep', 'step_finished plan completed', 'turn_end 1', 'step_started write');
  });

  test('get the answer also if they are registered after it', () => {
    const post = hook('PostStep', 'post', { step: 'plan' });
    given(running({ ...TWO, hooks: [hook('post_turn', 'watch')] }), answered('a plan'))
      .when(hooksChanged([post]), hooksSaid(undefined))
      .thenEvent('hook_call', {
        payload: expect.objectContaining({ step: { name: 'plan', args: { prompt: 'Do plan.' }, output: 'a plan' } }),
      });
  });

  test('are not called for a turn that continues', () => {
    given(running(hooked()))
      .when(asked(call('a', 'read')), returned('a'))
      .thenNever('hook_call');
  });

  test('may rewrite it, and the next step gets the new answer', () => {
    const outcome = given(running(hooked()), answered('a plan'))
      .when(hooksSaid({ output: 'a better plan' }))
      .thenIncludes('step_output_rewritten plan by hook:post', 'step_finished plan completed')
      .thenEvent('step_finished', { output: 'a better plan' });
    expect(instructions(outcome).at(-1)).toBe(
      'Step 2 of 2: write\n\nA hook replaced the output of step plan with this:\na better plan\n\nDo write.',
    );
  });

  test('may refuse it: the step has failed', () => {
    given(running(hooked('fail')), answered())
      .when(hooksSaid({ deny: 'too thin' }), toolsClosed)
      .thenIncludes('step_finished plan failed step_denied: fail', 'run_failed step step_denied', 'agent_end error')
      .thenEvent('run_failed', {
        error: { code: 'step_denied', message: 'hook post rejected the output of the step: too thin' },
      });
    given(running(hooked('continue')), answered())
      .when(hooksSaid({ deny: 'too thin' }))
      .thenIncludes('step_finished plan failed step_denied: continue', 'turn_end 1', 'step_started write');
    given(running(hooked('escalate')), answered())
      .when(hooksSaid({ deny: 'too thin' }))
      .thenIncludes('step_finished plan failed step_denied: escalate', 'turn_end 1', 'suspended');
  });
});

test('a step that a fork’s persona does not declare is unfinished, and its answer is still requested', () => {
  given(running(TWO), takenOver({ settings: { persona: 'other' } }))
    .when(provisioned())
    .thenIncludes('reprovisioned', 'step_finished plan unfinished')
    .thenState('assistant_streaming.streaming')
    .thenEffects('call_model')
    .when(answered(), toolsClosed)
    .thenIncludes('agent_end end_turn');
});

test('a step continues in a fork with only another model', () => {
  given(running(TWO), takenOver({ settings: { model: 'scripted/other.yaml' } }))
    .when(provisioned({ ...TWO, maxTurns: 9 }))
    .thenNever('step_finished')
    .when(answered())
    .thenIncludes('step_finished plan completed', 'step_started write');
});

test('hooks of a step are called for its events: thresholds of a budget', () => {
  given(running({ ...TWO, budgets: { tokens: 100 }, hooks: [hook('OnBudgetThreshold', 'h', { step: 'write' })] }))
    .when(using(10, 50, answered()))
    .thenNever('hook_call')
    .when(using(10, 20, answered()))
    .thenIncludes('hook_call h OnBudgetThreshold');
});
