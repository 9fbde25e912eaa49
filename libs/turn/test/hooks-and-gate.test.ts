/**
 * Effects of hooks on a turn: before the loop, before calls, at the gate, on questions, on results. A missing answer
 * never allows.
 */
import { BOUNDS, type ConsultOutcome, type JsonObject } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { given } from './given.ts';
import {
  answered,
  asked,
  call,
  callCancelled,
  cancelled,
  Failing,
  hook,
  hooksCancelled,
  hooksChanged,
  hooksRewroteUnfit,
  hooksSaid,
  type Move,
  modelFailed,
  modelStopped,
  prompted,
  provisioned,
  returned,
  running,
  started,
  toolsClosed,
} from './moves.ts';

function nested(depth: number): JsonObject {
  let value: JsonObject = {};
  for (let level = 1; level < depth; level++) value = { inner: value };
  return value;
}

describe('a consult', () => {
  test('records every registration before any is called', () => {
    given(started())
      .when(provisioned({ hooks: [hook('session_start', 'one'), hook('session_start', 'two')] }))
      .thenIncludes('agent_start run 1', 'hook_call one session_start', 'hook_call two session_start')
      .thenState('provisioning.session_start')
      .thenEffects('consult session_start');
  });

  test('records the return value of each registration in order, also of those not called', () => {
    given(running({ hooks: [hook('PreToolUse', 'one'), hook('PreToolUse', 'two')] }), asked(call('a', 'read')))
      .when(hooksSaid({ deny: 'no' }))
      .thenIncludes(
        'hook_returned one PreToolUse a deny',
        'hook_returned two PreToolUse a not_run',
        'hook_vetoed one PreToolUse a deny',
        'call_ended a denied by hook',
        'consult_ended PreToolUse a',
      );
  });

  test('calls only registrations with a pattern that matches the tool', () => {
    given(running({ hooks: [hook('PreToolUse', 'h', { pattern: 'ask*' })] }))
      .when(asked(call('a', 'read'), call('b', 'ask')))
      .thenIncludes('hook_call h PreToolUse b')
      .thenNever('hook_call h PreToolUse a');
  });

  // `given` validates every event: a record with an invalid one could not be read again.
  test.each(['PreToolUse', 'gate_tool_calls', 'permission_asked'] as const)(
    'at %s is readable if the arguments are nested as deep as allowed',
    (point) => {
      given(running({ hooks: [hook(point)] }))
        .when(asked(call('a', 'ask', { args: nested(BOUNDS.jsonDepthMax) })))
        .thenIncludes(`hook_call ${point} ${point}${point === 'gate_tool_calls' ? '' : ' a'}`);
    },
  );

  test('about a result is readable if its detail is nested as deep as allowed', () => {
    const result = { content: [], is_error: false, detail: nested(BOUNDS.jsonDepthMax) };
    given(running({ hooks: [hook('PostToolUse')] }), asked(call('a', 'read')))
      .when(returned('a', 'ok', { result }))
      .thenIncludes('hook_call PostToolUse PostToolUse a');
  });

  test('is skipped at a point without a hook', () => {
    given(running({ hooks: [hook('session_end')] }))
      .when(asked(call('a', 'read')))
      .thenNever('hook_call');
  });

  test('fails as configured by the called registration, not by one with the same id at another point', () => {
    const hooks = [hook('session_start', 'h', { on_error: 'fail_open' }), hook('PreToolUse', 'h')];
    given(started(), provisioned({ hooks }), hooksSaid(true), asked(call('a', 'read')))
      .when(hooksSaid(new Failing()))
      .thenIncludes('call_ended a denied by hook');
  });

  test('does not include hooks registered while it is open', () => {
    const first = hook('PreToolUse', 'first');
    const late = hook('PreToolUse', 'late');
    given(running({ hooks: [first] }), asked(call('a', 'read')))
      .when(hooksChanged([first, late]), hooksSaid(undefined))
      .thenIncludes('hooks_changed', 'hook_returned first PreToolUse a no_objection', 'call_started a')
      .thenNever('hook_call late');
  });

  test('with a repeated answer counts once', () => {
    given(running({ hooks: [hook('PreToolUse')] }), asked(call('a', 'read')))
      .when(hooksSaid(undefined))
      .again()
      .thenNothing('no open effect 3-0');
  });

  test('ignores an answer to the previous consult', () => {
    given(running({ hooks: [hook('PreToolUse')] }), asked(call('a', 'read'), call('b', 'read')))
      .when(hooksSaid({ deny: 'not a' }))
      .again()
      .thenNothing('no open effect 3-0')
      .when(hooksSaid(undefined))
      .thenIncludes('consult_ended PreToolUse b', 'call_started b');
  });

  test('assigns answers by hook, whatever their order', () => {
    const swapped: Move = (state) => {
      const outcome = (hooksSaid({ deny: 'no' }, undefined) as (now: typeof state) => ConsultOutcome)(state);
      return { ...outcome, answers: outcome.answers.toReversed() };
    };
    given(running({ hooks: [hook('PreToolUse', 'one'), hook('PreToolUse', 'two')] }), asked(call('a', 'read')))
      .when(swapped)
      .thenIncludes('hook_returned one PreToolUse a deny', 'hook_returned two PreToolUse a no_objection')
      .thenIncludes('hook_vetoed one PreToolUse a deny');
  });

  test('uses the newest table, and an equal table is not a change', () => {
    const table = [hook('PreToolUse', 'new')];
    given(running({ hooks: [hook('PreToolUse', 'old')] }), hooksChanged(table))
      .when(asked(call('a', 'read')))
      .thenIncludes('hook_call new PreToolUse a')
      .thenNever('hook_call old')
      .when(hooksChanged(table))
      .thenNothing('unchanged hook table');
  });
});

describe('before the loop', () => {
  test('session_start comes before user_prompt_submit, and both before the first turn', () => {
    given(started())
      .when(
        provisioned({ hooks: [hook('user_prompt_submit'), hook('session_start')] }),
        hooksSaid(true),
        hooksSaid(true),
      )
      .thenIncludes(
        'agent_start run 1',
        'hook_call session_start session_start',
        'consult_ended session_start',
        'hook_call user_prompt_submit user_prompt_submit',
        'consult_ended user_prompt_submit',
        'turn_start 1',
      );
  });

  test('user_prompt_submit gets the prompt and its origin', () => {
    given(started())
      .when(provisioned({ hooks: [hook('user_prompt_submit')] }))
      .thenEvent('hook_call', {
        payload: {
          event: 'user_prompt_submit',
          session: { id: 's1' },
          persona: 'coder',
          turn: 0,
          prompt: 'hello',
          origin: 'prompt',
        },
      });
  });

  test.each([
    ['{block: true}', { block: true, reason: 'no secrets' }, 'prompt_blocked'],
    ['false', false, 'prompt_blocked'],
    ['a time-out', new Failing('hook_timeout'), 'hook_timeout'],
    ['a misspelt key', { blok: true }, 'verdict_invalid'],
  ])('a prompt that is answered with %s never reaches a model', (_name, said, code) => {
    given(started(), provisioned({ hooks: [hook('user_prompt_submit')] }))
      .when(hooksSaid(said), toolsClosed)
      .thenIncludes(
        'hook_vetoed user_prompt_submit user_prompt_submit block',
        `run_failed prompt ${code}`,
        'consult_ended user_prompt_submit',
        'loop_checkpoint loop_exit',
        'agent_end user_prompt_submit_blocked',
      )
      .thenState('stopped')
      .thenNever('turn_start');
  });

  test('a hook that fails open accepts the prompt', () => {
    given(started(), provisioned({ hooks: [hook('user_prompt_submit', 'h', { on_error: 'fail_open' })] }))
      .when(hooksSaid(new Failing()))
      .thenIncludes('hook_returned h user_prompt_submit hook_timeout', 'turn_start 1');
  });

  test.each([
    ['a misspelt key', { blok: true }, 'verdict_invalid'],
    ['an answer of another point', { deny: 'no' }, 'verdict_not_allowed'],
  ])('%s is not a failure that accepts the prompt', (_name, said, code) => {
    given(started(), provisioned({ hooks: [hook('user_prompt_submit', 'h', { on_error: 'fail_open' })] }))
      .when(hooksSaid(said), toolsClosed)
      .thenIncludes(`run_failed prompt ${code}`)
      .thenNever('turn_start');
  });

  test('a blocked session continues with another prompt', () => {
    const around = { hooks: [hook('user_prompt_submit')] };
    given(started(), provisioned(around), hooksSaid(false), toolsClosed)
      .when(prompted(), provisioned(around), hooksSaid(undefined))
      .thenIncludes('agent_start run 2', 'turn_start 1');
  });
});

describe('PreToolUse', () => {
  const two = [hook('PreToolUse', 'one'), hook('PreToolUse', 'two')];

  test('runs in call order, one call after another, before the gate', () => {
    given(
      running({ hooks: [hook('PreToolUse'), hook('gate_tool_calls')] }),
      asked(call('a', 'read'), call('b', 'read')),
    )
      .when(hooksSaid(undefined), hooksSaid(undefined))
      .thenIncludes(
        'consult_ended PreToolUse a',
        'hook_call PreToolUse PreToolUse b',
        'consult_ended PreToolUse b',
        'hook_call gate_tool_calls gate_tool_calls',
      )
      .thenNever('call_started');
  });

  test('may refuse a call: it never runs, the others do', () => {
    given(running({ hooks: [hook('PreToolUse')] }), asked(call('a', 'read'), call('b', 'read')))
      .when(hooksSaid({ deny: 'not that one' }), hooksSaid(undefined))
      .thenIncludes('hook_vetoed PreToolUse PreToolUse a deny', 'call_ended a denied by hook', 'call_started b')
      .thenEvent('call_ended', { denial: { by: 'hook', hook: 'PreToolUse', reason: 'not that one', args: {} } })
      .thenNever('call_started a');
  });

  test('may rewrite arguments, and rewrites chain: the last result runs', () => {
    given(running({ hooks: two }), asked(call('a', 'read', { args: { n: 0 } })))
      .when(hooksSaid({ args: { n: 1 } }, { args: { n: 2 } }))
      .thenIncludes('call_args_rewritten a', 'call_args_rewritten a', 'call_started a')
      .thenEvent('call_args_rewritten', { args: { n: 1 }, by: 'hook:one' })
      .thenEvent('call_started', { args: { n: 2 } });
  });

  test('may refuse a call after a rewrite: the denial shows the rewritten arguments', () => {
    given(running({ hooks: two }), asked(call('a', 'read', { args: { n: 0 } })))
      .when(hooksSaid({ args: { n: 1 } }, { deny: 'no' }))
      .thenIncludes('call_args_rewritten a', 'call_ended a denied by hook')
      .thenEvent('call_ended', { denial: { by: 'hook', hook: 'two', reason: 'no', args: { n: 1 } } });
  });

  test('with a rewrite that does not fit the schema ends the call as an error', () => {
    given(running({ hooks: [hook('PreToolUse')] }), asked(call('a', 'read')))
      .when(hooksRewroteUnfit({ n: 'x' }))
      .thenIncludes('call_args_rewritten a', 'call_ended a error', 'loop_checkpoint post_tool_dispatch')
      .thenNever('call_started');
  });

  test.each([
    ['fails closed', 'fail_closed', 'call_ended a denied by hook'],
    ['fails open', 'fail_open', 'call_started a'],
  ] as const)('that times out and %s', (_name, on_error, line) => {
    given(running({ hooks: [hook('PreToolUse', 'h', { on_error })] }), asked(call('a', 'read')))
      .when(hooksSaid(new Failing()))
      .thenIncludes('hook_returned h PreToolUse a hook_timeout', line);
  });

  test('without an answer has failed: a missing answer never allows', () => {
    given(running({ hooks: [hook('PreToolUse')] }), asked(call('a', 'read')))
      .when(hooksCancelled)
      .thenIncludes('hook_returned PreToolUse PreToolUse a hook_unavailable', 'call_ended a denied by hook')
      .thenNever('call_started');
  });

  test('is not called for calls that can never run', () => {
    const unknown = { problem: { code: 'unknown_tool', message: 'There is no such tool.' } };
    given(running({ hooks: [hook('PreToolUse'), hook('gate_tool_calls')] }))
      .when(asked(call('a', 'nosuch', unknown)))
      .thenIncludes('call_ended a error')
      .thenNever('hook_call');
  });
});

describe('the gate', () => {
  const gated: Move = [running({ hooks: [hook('gate_tool_calls', 'gate')] })];
  const batch = [call('a', 'read'), call('b', 'read'), call('c', 'read')];

  test('sees the whole batch once, before anything runs, with well-formed calls only', () => {
    given(gated)
      .when(
        asked(
          call('a', 'read'),
          call('x', 'nosuch', { args: null, problem: { code: 'unknown_tool', message: 'None such.' } }),
          call('b', 'forbidden'),
        ),
      )
      .thenIncludes('call_ended x error', 'loop_checkpoint pre_tool_dispatch', 'hook_call gate gate_tool_calls')
      .thenNever('call_started')
      .thenEvent('hook_call', {
        payload: {
          event: 'gate_tool_calls',
          session: { id: 's1' },
          persona: 'coder',
          turn: 1,
          calls: [
            { name: 'read', args: {}, call_id: 'a' },
            { name: 'forbidden', args: {}, call_id: 'b' },
          ],
        },
      });
  });

  test('answers by index', () => {
    given(gated, asked(...batch))
      .when(hooksSaid([{ allow: true }, { allow: false, reason: 'not b' }, { allow: true }]))
      .thenIncludes(
        'hook_vetoed gate gate_tool_calls b deny',
        'call_ended b denied by hook',
        'call_started a',
        'call_started c',
      )
      .thenEvent('call_ended', { denial: { by: 'hook', hook: 'gate', reason: 'not b', args: {} } })
      .thenNever('call_started b');
  });

  test.each([
    ['a shorter list', Array(2).fill({ allow: true }), '2 verdicts for a batch of 3 calls'],
    ['a longer list', Array(4).fill({ allow: true }), '4 verdicts for a batch of 3 calls'],
    ['an empty list', [], '0 verdicts for a batch of 3 calls'],
  ])('%s denies the batch with a reason, even if the hook fails open', (_name, said, problem) => {
    const open = hook('gate_tool_calls', 'gate', { on_error: 'fail_open' });
    const reason = `gate_tool_calls: ${problem}`;
    given(running({ hooks: [open] }), asked(...batch))
      .when(hooksSaid(said))
      .thenEvent('hook_returned', { failure: { code: 'verdict_invalid', message: reason } })
      .thenCount('call_ended', 3)
      .thenEvent('call_ended', { call_id: 'a', denial: { by: 'gate_unavailable', hook: 'gate', reason, args: {} } })
      .thenNever('call_started');
  });

  test('a malformed answer denies its own call only; the journal and the model get the problem', () => {
    const reason = 'gate_tool_calls: unknown key "alow" in "[1]"';
    given(gated, asked(...batch))
      .when(hooksSaid([{ allow: true }, { alow: true }, { allow: true }]))
      .thenIncludes('call_ended b denied by gate_unavailable', 'call_started a', 'call_started c')
      .thenEvent('hook_returned', {
        verdict: { kind: 'gate', calls: [{ allow: true }, { invalid: reason }, { allow: true }] },
      })
      .thenEvent('call_ended', {
        call_id: 'b',
        result: expect.objectContaining({ content: [{ type: 'text', text: `Denied by gate gate: ${reason}.` }] }),
      });
  });

  test.each([
    ['silence', undefined],
    ['true', true],
    ['something else than a list', { allow: true }],
    ['a time-out', new Failing()],
  ])('%s denies the batch', (_name, said) => {
    given(gated, asked(...batch))
      .when(hooksSaid(said))
      .thenIncludes('call_ended a denied by gate_unavailable', 'loop_checkpoint post_tool_dispatch', 'turn_start 2')
      .thenNever('call_started');
  });

  test('that was aborted for any reason denies the batch', () => {
    given(gated, asked(...batch))
      .when(hooksCancelled)
      .thenCount('call_ended', 3)
      .thenNever('call_started');
  });

  test('of two, one refusal is enough, and the call is refused once', () => {
    given(
      running({ hooks: [hook('gate_tool_calls', 'one'), hook('gate_tool_calls', 'two')] }),
      asked(call('a', 'read'), call('b', 'read')),
    )
      .when(hooksSaid([{ allow: false }, { allow: true }], [{ allow: false }, { allow: false }]))
      .thenCount('call_ended a', 1)
      .thenCount('call_ended b', 1)
      .thenNever('call_started');
  });

  test('is not called without calls: a batch that hooks refused completely has ended', () => {
    given(running({ hooks: [hook('PreToolUse'), hook('gate_tool_calls')] }), asked(call('a', 'read')))
      .when(hooksSaid({ deny: 'no' }))
      .thenIncludes('call_ended a denied by hook', 'loop_checkpoint post_tool_dispatch')
      .thenNever('hook_call gate_tool_calls');
  });

  test('does not overrule a rule that refuses', () => {
    given(gated, asked(call('a', 'forbidden')))
      .when(hooksSaid([{ allow: true }]))
      .thenIncludes('call_ended a denied by rule')
      .thenNever('call_started');
  });

  test('does not answer the question that a rule asks', () => {
    given(gated, asked(call('a', 'ask')))
      .when(hooksSaid([{ allow: true }]))
      .thenIncludes('approval_requested a');
  });
});

describe('rules', () => {
  test('allow, deny and ask', () => {
    given(running())
      .when(asked(call('a', 'read'), call('b', 'forbidden'), call('c', 'ask')))
      .thenJournal(
        'message_complete asks a b c',
        'loop_checkpoint pre_tool_dispatch',
        'call_ended b denied by rule',
        'approval_requested c',
        'call_started a',
      )
      .thenEvent('call_ended', { denial: { by: 'rule', rule: 'rules[1]', args: {} } });
  });

  test('apply to the arguments as rewritten by hooks', () => {
    given(
      running({
        hooks: [hook('PreToolUse')],
        rules: [
          { tool: 'read', when: 'path == "secret"', action: 'deny' },
          { tool: '*', action: 'allow' },
        ],
      }),
      asked(call('a', 'read', { args: { path: 'open' } })),
    )
      .when(hooksSaid({ args: { path: 'secret' } }))
      .thenIncludes('call_ended a denied by rule')
      .thenNever('call_started');
  });
});

describe('permission_asked', () => {
  const around = { hooks: [hook('permission_asked', 'perm')] };

  test('is called only for calls with the action ask', () => {
    given(running(around))
      .when(asked(call('a', 'read'), call('b', 'ask'), call('c', 'forbidden')))
      .thenIncludes('hook_call perm permission_asked b')
      .thenNever('hook_call perm permission_asked a', 'hook_call perm permission_asked c', 'call_started');
  });

  test.each([
    ['allow', 'call_started a'],
    ['deny', 'call_ended a denied by hook'],
    ['ask', 'approval_requested a'],
  ])('that answers %s', (decision, line) => {
    given(running(around), asked(call('a', 'ask')))
      .when(hooksSaid({ decision }))
      .thenIncludes(`hook_vetoed perm permission_asked a ${decision}`, 'loop_checkpoint pre_tool_dispatch')
      .thenIncludes(line);
  });

  test('without an objection leaves the decision to a person', () => {
    given(running(around), asked(call('a', 'ask')))
      .when(hooksSaid(true))
      .thenIncludes('approval_requested a')
      .thenNever('call_started');
  });

  test('that fails closed refuses', () => {
    given(running(around), asked(call('a', 'ask')))
      .when(hooksSaid(new Failing()))
      .thenIncludes('call_ended a denied by hook');
  });

  test('is called for a call that PreToolUse hooks accepted, without a gate in between', () => {
    given(running({ hooks: [hook('PreToolUse'), ...around.hooks] }), asked(call('a', 'ask')))
      .when(hooksSaid(undefined))
      .thenIncludes('consult_ended PreToolUse a', 'hook_call perm permission_asked a')
      .thenNever('approval_requested');
  });

  test('is called for each call in turn', () => {
    given(running(around), asked(call('a', 'ask'), call('b', 'ask')))
      .when(hooksSaid({ decision: 'allow' }), hooksSaid({ decision: 'deny' }))
      .thenIncludes('consult_ended permission_asked a', 'hook_call perm permission_asked b', 'call_started a')
      .thenNever('call_started b', 'approval_requested');
  });
});

describe('PostToolUse', () => {
  const around = { hooks: [hook('PostToolUse', 'post')] };
  const back: Move = [running(around), asked(call('a', 'read')), returned('a')];

  test('sees the result before the model does', () => {
    given(running(around), asked(call('a', 'read')))
      .when(returned('a'))
      .thenJournal('call_returned a ok', 'hook_call post PostToolUse a')
      .thenState('function_execute.running')
      .thenEffects('consult PostToolUse a')
      .when(hooksSaid(undefined))
      .thenIncludes('call_ended a ok', 'consult_ended PostToolUse a', 'loop_checkpoint post_tool_dispatch');
  });

  test('may rewrite the result', () => {
    given(back)
      .when(hooksSaid('REDACTED'))
      .thenEvent('call_ended', {
        status: 'ok',
        is_error: false,
        result: { content: [{ type: 'text', text: 'REDACTED' }], is_error: false },
      });
  });

  test.each([
    ['an answer into an error', 'ok', { is_error: true }, 'call_ended a error'],
    ['an error into an answer', 'error', { is_error: false, result: 'all is well' }, 'call_ended a ok'],
  ] as const)('may turn %s: the flag is derived after the last rewrite', (_name, status, said, line) => {
    given(running(around), asked(call('a', 'read')), returned('a', status))
      .when(hooksSaid(said))
      .thenIncludes(line);
  });

  test('chains: each gets the result of the previous one, and the last result counts', () => {
    given(
      running({ hooks: [hook('PostToolUse', 'one'), hook('PostToolUse', 'two')] }),
      asked(call('a', 'read')),
      returned('a'),
    )
      .when(hooksSaid({ is_error: true }, { result: 'mended', is_error: false }))
      .thenEvent('call_ended', { status: 'ok', is_error: false });
  });

  test.each([
    ['ok', 'The tool call ran and took effect. Do not repeat it to see its result.'],
    ['error', 'The tool call ran and ended with an error. It may have taken effect.'],
    ['interrupted', 'The outcome of this tool call is unknown.'],
  ] as const)('that fails closed withholds the result, and reports a call that is %s', (status, effect) => {
    const text = `${effect} The result is withheld: hook post failed: hook_timeout.`;
    given(running(around), asked(call('a', 'read')), returned('a', status))
      .when(hooksSaid(new Failing()))
      .thenEvent('call_ended', {
        result: { content: [{ type: 'text', text }], is_error: true, detail: { code: 'hook_timeout' } },
      });
  });

  test('that fails open shows it', () => {
    given(
      running({ hooks: [hook('PostToolUse', 'post', { on_error: 'fail_open' })] }),
      asked(call('a', 'read')),
      returned('a'),
    )
      .when(hooksSaid(new Failing()))
      .thenIncludes('call_ended a ok');
  });

  test('checks one result after another', () => {
    given(running(around), asked(call('a', 'read'), call('b', 'read')), returned('b'))
      .when(returned('a'))
      .thenJournal('call_returned a ok')
      .when(hooksSaid(undefined))
      .thenIncludes('call_ended b ok', 'hook_call post PostToolUse a');
  });

  test('withholds an unchecked result when the run is cancelled', () => {
    const { session } = given(back)
      .when(cancelled(), hooksCancelled, toolsClosed)
      .thenIncludes('call_ended a cancelled');
    const shown = JSON.stringify(
      session.steps.flatMap(({ events }) => events.filter(({ type }) => type === 'call_ended')),
    );
    expect(shown).not.toContain('result of a');
  });

  test('withholds the results in its queue when the run is cancelled', () => {
    given(running(around), asked(call('a', 'read'), call('b', 'read')), returned('b'), returned('a'))
      .when(cancelled())
      .thenJournal('control_outcome cancel cancelled', 'call_ended a cancelled')
      .when(hooksSaid(undefined), toolsClosed)
      .thenIncludes('call_ended b ok', 'agent_end cancelled');
  });

  test('also checks a tool that answers although its call was cancelled', () => {
    const { session } = given(running(around), asked(call('a', 'read')), callCancelled('a'))
      .when(returned('a'))
      .thenIncludes('call_ended a cancelled');
    expect(JSON.stringify(session.steps.at(-1)?.events)).not.toContain('result of a');
  });
});

describe('post_turn', () => {
  const around = { hooks: [hook('post_turn')] };

  test('is called after a batch, before the turn ends', () => {
    given(running(around), asked(call('a', 'read')))
      .when(returned('a'))
      .thenIncludes('loop_checkpoint post_tool_dispatch', 'hook_call post_turn post_turn')
      .thenState('steering_check.post_turn')
      .when(hooksSaid(undefined))
      .thenIncludes('consult_ended post_turn', 'turn_end 1', 'turn_start 2');
  });

  test('is called after a plain answer, before iteration_end', () => {
    given(running(around), answered())
      .when(hooksSaid(undefined))
      .thenIncludes('consult_ended post_turn', 'loop_checkpoint iteration_end', 'turn_end 1');
  });
});

describe('session_end', () => {
  test('is called after the tools are closed, with how the run ended, before agent_end', () => {
    given(running({ hooks: [hook('session_end')] }), answered())
      .when(toolsClosed)
      .thenJournal('tools_closed', 'hook_call session_end session_end')
      .when(hooksSaid(undefined))
      .thenJournal(
        'hook_returned session_end session_end no_objection',
        'consult_ended session_end',
        'agent_end end_turn',
      );
  });

  test.each([
    ['cancelled', [running({ hooks: [hook('session_end')] }), cancelled(), modelStopped()]],
    ['failed', [running({ hooks: [hook('session_end')] }), modelFailed()]],
  ] as const)('is called for a run that was %s, too', (_name, way) => {
    given(way)
      .when(toolsClosed)
      .thenJournal('tools_closed', 'hook_call session_end session_end')
      .thenEffects('consult session_end');
  });
});
