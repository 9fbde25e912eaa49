/**
 * Edge cases of a turn, and inputs at the same moment. The tests of `session` run the same cases with hosts.
 */
import { describe, expect, test } from 'vitest';
import { given } from './given.ts';
import {
  answered,
  approved,
  asked,
  call,
  callCancelled,
  cancelled,
  denied,
  followedUp,
  hook,
  hooksSaid,
  type Move,
  modelFailed,
  modelStopped,
  prompted,
  provisioned,
  reminded,
  resumed,
  returned,
  running,
  started,
  steered,
  suspended,
  toolsClosed,
} from './moves.ts';
import { asleep, calling, ended, idled } from './openings.ts';

const interrupt = steered('m', 'interrupt_immediate');

describe('1: an interrupt before an approved call starts stops it:', () => {
  test('while parked', () => {
    given(calling('ask'), interrupt)
      .when(approved('a'))
      .thenJournal('command_rejected not_pending allow-a', 'control_outcome approve not_pending a')
      .thenNever('call_started')
      .thenCount('call_ended a skipped', 1);
  });

  test('at the moment of approval: the order in the stream decides', () => {
    given(calling('ask')).when(interrupt, approved('a')).thenNever('call_started');
    given(calling('ask'))
      .when(approved('a'), interrupt)
      .thenIncludes('approval_decided a allow', 'loop_checkpoint pre_tool_dispatch', 'call_started a')
      .thenCount('call_started a', 1);
  });

  test('directly after the last decision, before a slot is free', () => {
    given(running({ parallelCalls: 1 }), asked(call('a', 'read'), call('b', 'ask')), approved('b'), interrupt)
      .when(returned('a'))
      .thenIncludes('loop_checkpoint pre_tool_dispatch delivers m skips b', 'call_ended b skipped')
      .thenNever('call_started b');
  });

  test.each([
    ['PreToolUse', 'read', undefined],
    ['gate_tool_calls', 'read', [{ allow: true }]],
    ['permission_asked', 'ask', { decision: 'allow' }],
  ] as const)('during %s', (point, toolName, said) => {
    given(running({ hooks: [hook(point)] }), asked(call('a', toolName)), interrupt)
      .when(hooksSaid(said))
      .thenIncludes('loop_checkpoint pre_tool_dispatch delivers m skips a', 'call_ended a skipped')
      .thenNever('call_started');
  });
});

test('2: a steer that arrives while a cancelled tool stops is delivered in the next turn', () => {
  given(running(), asked(call('a', 'read'), call('b', 'read')), callCancelled('a'), callCancelled('b'), steered('s'))
    .when(returned('a', 'cancelled', { timed_out: true }), returned('b', 'cancelled'))
    .thenIncludes('loop_checkpoint post_tool_dispatch delivers s', 'message_injected s steer at post_tool_dispatch')
    .thenIncludes('turn_end 1', 'turn_start 2')
    .thenCount('message_injected s', 1)
    .thenEffects('call_model');
});

describe('3: a steer between the last seam and the end is reported as pending for the next run, and delivered there:', () => {
  test.each<[string, Move, Move]>([
    ['while tools are closed', [running(), answered()], [toolsClosed]],
    ['while hooks are told of the end', ended({ hooks: [hook('session_end')] }), [hooksSaid(undefined)]],
    ['while the run unwinds', [running(), cancelled()], [modelStopped(), toolsClosed]],
  ])('%s', (_name, way, end) => {
    given(way, steered('s'), reminded('r', 'interrupt_immediate'), followedUp('f'))
      .when(end)
      .thenNever('message_injected')
      .thenEvent('agent_end', { pending: 3 })
      .when(prompted(), provisioned())
      .thenIncludes('loop_checkpoint iteration_start delivers s r')
      .when(answered())
      .thenIncludes('message_injected f followup at steering_check');
  });
});

describe('4: a second start or prompt is session_busy, and only the rejection is recorded:', () => {
  test.each<[string, Move]>([
    ['provisioning', started()],
    ['streaming', running()],
    ['running calls', calling('read')],
    ['parked', calling('ask')],
    ['idling', idled()],
    ['suspended', asleep()],
    ['ending', [running(), answered()]],
  ])('%s', (_name, way) => {
    given(way).when(started({}, 'again')).thenJournal('command_rejected session_busy again');
    given(way).when(prompted('again')).thenJournal('command_rejected session_busy again');
  });
});

describe('5: calls that can never run', () => {
  const bad = { args: null, problem: { code: 'invalid_call_arguments', message: 'cut off.' } };
  test('never run, reach neither hooks nor gate, and have error results', () => {
    const hooks = [hook('PreToolUse'), hook('gate_tool_calls'), hook('permission_asked')];
    given(running({ hooks }))
      .when(asked(call('a', 'read', bad), call('b', 'ask', bad)))
      .thenIncludes('call_ended a error', 'call_ended b error', 'loop_checkpoint post_tool_dispatch', 'turn_start 2')
      .thenNever('call_started', 'hook_call', 'approval_requested');
  });

  test('next to a valid one: hooks and gate see only the valid one', () => {
    const hooks = [hook('PreToolUse'), hook('gate_tool_calls')];
    const { session } = given(running({ hooks })).when(
      asked(call('a', 'read', bad), call('b', 'read')),
      hooksSaid(undefined),
    );
    const gate = session.steps.at(-1)?.events.find((event) => event.type === 'hook_call');
    expect(gate?.type === 'hook_call' && gate.payload?.calls).toEqual([{ name: 'read', args: {}, call_id: 'b' }]);
    expect(session.lines()).not.toContain('hook_call PreToolUse PreToolUse a');
  });
});

test('6: a model effect that ends in error ends the run, and closes its turn and answer once', () => {
  given(running())
    .when(modelFailed('half', call('a', 'read')), toolsClosed)
    .thenIncludes('message_complete partial "half"', 'run_failed model model_unavailable', 'turn_end 1')
    .thenCount('message_complete', 1)
    .thenCount('agent_end', 1)
    .thenState('failed');
});

describe('7: a duplicate changes nothing the second time:', () => {
  test.each<[string, Move, Move]>([
    ['start', [], started()],
    ['prompt', ended(), prompted()],
    ['steer', running(), steered('s')],
    ['steer that interrupts parked calls', calling('ask'), interrupt],
    ['remind', running(), reminded('r')],
    ['followup', running(), followedUp('f')],
    ['approve', calling('ask'), approved('a')],
    ['deny', calling('ask'), denied('a')],
    ['approve that was rejected', running(), approved('a')],
    ['cancel', running(), cancelled()],
    ['cancel_call', calling('read'), callCancelled('a')],
    ['cancel_call of a parked call', calling('ask'), callCancelled('a')],
    ['suspend', running(), suspended()],
    ['resume', asleep(), resumed()],
  ])('%s', (_name, way, command) => {
    given(way).when(command).again().thenNothing('repeated command');
  });

  test.each<[string, Move, Move]>([
    ['provisioning', started(), provisioned()],
    ['model', running(), answered()],
    ['call', calling('read'), returned('a')],
    ['consult', calling('read', { hooks: [hook('PreToolUse')] }), hooksSaid(undefined)],
    ['tools closed', [running(), answered()], toolsClosed],
  ])('the outcome of an effect: %s', (_name, way, outcome) => {
    const once = given(way).when(outcome);
    const { state } = once.session;
    once.again().thenNothing();
    expect(once.session.state).toBe(state);
  });
});

describe('8: partial text is kept in the journal, marked as partial,', () => {
  test.each<[string, Move]>([
    ['before an abort', [cancelled(), modelStopped('half')]],
    ['before an error', modelFailed('half')],
  ])('%s', (_name, then) => {
    given(running())
      .when(then)
      .thenEvent('message_complete', {
        message: { role: 'assistant', content: [{ type: 'text', text: 'half' }], partial: true },
      });
  });
});

describe('9: arguments cannot be rewritten after an approval:', () => {
  test('hooks run first, and the approval is about their result', () => {
    given(running({ hooks: [hook('PreToolUse')] }), asked(call('a', 'ask', { args: { path: 'x' } })))
      .when(hooksSaid({ args: { path: 'y' } }))
      .thenEvent('approval_requested', { args: { path: 'y' } })
      .when(approved('a'))
      .thenJournal(
        'approval_decided a allow',
        'control_outcome approve allowed a',
        'loop_checkpoint pre_tool_dispatch',
        'call_started a',
      )
      .thenEvent('call_started', { args: { path: 'y' } });
  });
});

describe('two interrupts in a row', () => {
  const second = steered('n', 'interrupt_immediate');

  test('before the calls are delivered together, and skip them once', () => {
    given(running(), interrupt, second)
      .when(asked(call('a', 'read')))
      .thenIncludes('loop_checkpoint pre_tool_dispatch delivers m n skips a', 'turn_end 1 dispatch_skipped')
      .thenCount('call_ended a skipped', 1);
  });

  test('one at a time, if configured: the second after an answer to the first', () => {
    given(running({ steering: 'one_at_a_time' }), interrupt, second)
      .when(asked(call('a', 'read')))
      .thenIncludes(
        'loop_checkpoint pre_tool_dispatch delivers m skips a',
        'message_injected m steer at pre_tool_dispatch',
        'turn_start 2',
        'loop_checkpoint iteration_start',
      )
      .when(asked(call('b', 'read')))
      .thenIncludes('loop_checkpoint pre_tool_dispatch delivers n skips b');
  });

  test('while calls are parked: the first ends the turn, the second applies to the next answer', () => {
    given(calling('ask'), interrupt)
      .when(second, asked(call('b', 'ask')))
      .thenIncludes('loop_checkpoint pre_tool_dispatch delivers n skips b', 'turn_end 2 dispatch_skipped');
  });
});

describe('interrupt, cancel and approval at the same moment', () => {
  const moves = { interrupt, cancel: cancelled('x'), approval: approved('a') };
  const skipped = [
    'loop_checkpoint pre_tool_dispatch delivers m skips a',
    'approval_decided a superseded',
    'call_ended a skipped',
    'message_injected m steer at pre_tool_dispatch',
    'turn_end 1 dispatch_skipped',
  ];
  const aborted = ['control_outcome cancel cancelled', 'approval_decided a aborted', 'call_ended a aborted'];
  const tooLate = 'command_rejected not_pending allow-a';
  const starts = ['approval_decided a allow', 'loop_checkpoint pre_tool_dispatch', 'call_started a'];

  test.each<[readonly (keyof typeof moves)[], readonly string[], { ended: string; starts: number; pending: number }]>([
    [['interrupt', 'cancel', 'approval'], [...skipped, tooLate], { ended: 'skipped', starts: 0, pending: 0 }],
    [['interrupt', 'approval', 'cancel'], [...skipped, tooLate], { ended: 'skipped', starts: 0, pending: 0 }],
    [['cancel', 'interrupt', 'approval'], [...aborted, tooLate], { ended: 'aborted', starts: 0, pending: 1 }],
    [['cancel', 'approval', 'interrupt'], [...aborted, tooLate], { ended: 'aborted', starts: 0, pending: 1 }],
    [['approval', 'interrupt', 'cancel'], starts, { ended: 'cancelled', starts: 1, pending: 1 }],
    [['approval', 'cancel', 'interrupt'], starts, { ended: 'cancelled', starts: 1, pending: 1 }],
  ])('%j', (order, lines, end) => {
    const outcome = given(calling('ask')).when(...order.map((name) => moves[name]));
    outcome.thenIncludes(...lines);
    const { context } = outcome.session.state;
    if (context.calls[0]?.status === 'running') outcome.session.make(returned('a', 'cancelled'));
    if (outcome.session.state.context.model) outcome.session.make(modelStopped());
    outcome.session.make(toolsClosed);
    outcome
      .thenState('stopped')
      .thenCount('call_started', end.starts)
      .thenCount(`call_ended a ${end.ended}`, 1)
      .thenCount('call_ended', 1)
      .thenEvent('agent_end', { stop_reason: 'cancelled', pending: end.pending })
      .thenCount('agent_end', 1);
  });
});

test('a late result after a cancel is dropped, whatever its content', () => {
  given(calling('read'), cancelled())
    .when(returned('a', 'cancelled', { timed_out: true }), toolsClosed)
    .thenIncludes('call_ended a cancelled timed_out', 'agent_end cancelled')
    .when({
      type: 'call_outcome',
      effect_id: '3-0',
      call_id: 'a',
      status: 'ok',
      result: { content: [{ type: 'text', text: 'done after all' }], is_error: false },
      duration_ms: 60_000,
    })
    .thenNothing('no open effect 3-0');
});

describe('a batch that was skipped completely', () => {
  test('passes no post_tool_dispatch; turn_end records it, with the cost of the answer', () => {
    given(running(), interrupt)
      .when(asked(call('a', 'read'), call('b', 'read')))
      .thenEvent('turn_end', {
        turn: 1,
        dispatch_skipped: true,
        skip_reason: 'interrupt_immediate',
        usage: { input_tokens: 10, output_tokens: 1 },
      })
      .thenNever('loop_checkpoint post_tool_dispatch');
  });

  test('and a run that ends after it includes its cost', () => {
    given(running(), interrupt, asked(call('a', 'read')))
      .when(answered(), toolsClosed)
      .thenEvent('agent_end', { usage: { input_tokens: 20, output_tokens: 2 }, turns: 2 });
  });
});

test('failed names the failure and its record, for any failure', () => {
  for (const [way, code] of [
    [[running(), modelFailed('half')], 'model_unavailable'],
    [[calling('ask'), { type: 'session_failed', error: { code: 'x', message: 'y' }, n: 3 }], 'x'],
  ] as readonly [Move, string][]) {
    const { session } = given(way).when(toolsClosed);
    const failedAt = session.steps.find(({ events }) => events.some(({ type }) => type === 'run_failed'))?.n;
    const end = session.steps.at(-1)?.events.at(-1);
    expect(end).toMatchObject({ type: 'agent_end', stop_reason: 'error', error: { code }, failed_at: failedAt });
  }
});
