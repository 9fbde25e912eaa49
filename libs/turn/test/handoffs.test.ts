/**
 * Hand-offs: a session changes its persona; what each starts with, and what prevents a hand-off.
 */
import { BOUNDS, textOf } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { budgetsOf, openStep } from '../src/mod.ts';
import { given, type Outcome } from './given.ts';
import {
  answered,
  approved,
  asked,
  call,
  callCancelled,
  cancelled,
  denied,
  Failing,
  followedUp,
  handoff,
  hook,
  hooksCancelled,
  hooksChanged,
  hooksSaid,
  later,
  type Move,
  notTakenOver,
  owned,
  preempted,
  prompted,
  returned,
  running,
  type Surroundings,
  steered,
  suspended,
  timerFires,
  tookOver,
  toolsClosed,
  using,
} from './moves.ts';

const CODER: Surroundings = { handoffs: ['tester', 'writer'] };
const TESTER: Surroundings = { persona: 'tester', handoffs: ['coder'] };

/** Messages to the model that it did not write. */
const said = (outcome: Outcome): string[] =>
  outcome.session.steps
    .flatMap(({ events }) => events)
    .flatMap((event) => (event.type === 'message_injected' ? [textOf(event.message)] : []));
const results = (outcome: Outcome): string[] =>
  outcome.session.steps
    .flatMap(({ events }) => events)
    .flatMap((event) =>
      event.type === 'call_ended'
        ? [`${event.call_id} ${event.status} ${event.result.detail?.code ?? event.denial?.by ?? ''}`.trim()]
        : [],
    );
const context = (outcome: Outcome) => outcome.session.state.context;
/** The session has the persona tester. */
const handedOver = (from: Surroundings = CODER, to: Surroundings = TESTER): Move => [
  running(from),
  asked(handoff('h')),
  tookOver('h', to),
];

describe('a hand-off', () => {
  test('changes the persona from the next turn on, in the same run, with the briefing', () => {
    const outcome = given(running(CODER))
      .when(asked(handoff('h', 'tester', 'test the parser')))
      .thenIncludes('handoff_emitted h coder to tester', 'call_started h')
      .thenEffects('hand_off h')
      .when(tookOver('h', TESTER))
      .thenJournal(
        'persona_changed coder to tester',
        'call_ended h ok',
        'message_injected h direct at handoff',
        'loop_checkpoint post_tool_dispatch',
        'turn_end 1',
        'turn_start 2',
        'loop_checkpoint iteration_start',
        'loop_checkpoint pre_compact',
        'loop_checkpoint post_compact',
      )
      .thenCount('agent_start', 1);
    expect(said(outcome)).toEqual(['Handed off to you by coder:\ntest the parser']);
    expect(context(outcome).pinned).toMatchObject({ persona: 'tester', handoffs: ['coder'] });
    outcome
      .when(answered(), toolsClosed)
      .thenIncludes('agent_end end_turn')
      .when(prompted())
      .thenState('provisioning.resolving');
  });

  test('goes back and forth, each time with the current definition', () => {
    const outcome = given(handedOver())
      .when(asked(handoff('b', 'coder')), tookOver('b', CODER), answered(), toolsClosed)
      .thenIncludes('handoff_emitted b tester to coder', 'persona_changed tester to coder', 'agent_end end_turn');
    expect(context(outcome).pinned?.persona).toBe('coder');
  });

  test.each([
    ['to one that the persona does not list', 'cook', 'handoff_not_listed'],
    ['to itself', 'coder', 'handoff_not_listed'],
  ])('%s is an error result, and the run continues', (_, to, code) => {
    const outcome = given(running({ handoffs: ['tester', 'coder'] })).when(
      asked(handoff('h', to)),
      answered(),
      toolsClosed,
    );
    expect(results(outcome)).toEqual([`h error ${code}`]);
    outcome.thenNever('handoff_emitted', 'call_started').thenIncludes('turn_start 2', 'agent_end end_turn');
  });

  test('names the allowed targets in its refusal, and the most similar one', () => {
    const outcome = given(running(CODER)).when(asked(handoff('h', 'testr')));
    outcome.thenEvent('call_ended', {
      result: {
        is_error: true,
        detail: { code: 'handoff_not_listed' },
        content: [
          {
            type: 'text',
            text: 'You cannot hand off to testr. You can hand off to: tester, writer. Did you mean tester? The session stays with you.',
          },
        ],
      },
    });
  });

  test('to an unknown persona is an error result with the known ones; the old persona continues', () => {
    const outcome = given(running(CODER), asked(handoff('h'))).when(notTakenOver('h'));
    outcome
      .thenIncludes('call_ended h error', 'turn_start 2')
      .thenCount('persona_changed', 1)
      .thenNever('message_injected')
      .thenEvent('call_ended', {
        result: {
          is_error: true,
          detail: { code: 'persona_not_found' },
          content: [{ type: 'text', text: 'The session stays with you: there is no persona tester; there are: coder' }],
        },
      });
    expect(context(outcome).pinned?.persona).toBe('coder');
  });

  test('is completed by another host that claims the session in between', () => {
    given(running(CODER), asked(handoff('h')))
      .when(owned(2))
      .thenEffects('hand_off h')
      .when(tookOver('h', TESTER))
      .thenIncludes('persona_changed coder to tester', 'call_ended h ok', 'turn_start 2');
  });

  test('with a late outcome changes nothing', () => {
    given(running(CODER), asked(handoff('h')), tookOver('h', TESTER))
      .when({ type: 'provision_outcome', effect_id: '3-0', status: 'cancelled' })
      .thenNothing();
  });
});

describe('next to other calls', () => {
  test('it starts after all of them have results, at any position', () => {
    given(running(CODER))
      .when(asked(handoff('h'), call('a', 'read'), call('b', 'read')))
      .thenEffects('call_tool a', 'call_tool b')
      .when(returned('b'))
      .thenEffects('call_tool a')
      .when(returned('a'))
      .thenIncludes('call_ended a ok', 'loop_checkpoint pre_tool_dispatch', 'handoff_emitted h coder to tester')
      .thenEffects('hand_off h');
  });

  test.each([
    ['allowed', [approved('a'), returned('a')]],
    ['denied', [denied('a')]],
    ['cancelled', [callCancelled('a')]],
  ] as const)('it waits for approvals like them: the other one is %s', (_, moves) => {
    given(running(CODER), asked(handoff('h'), call('a', 'ask')))
      .when(...moves)
      .thenIncludes('handoff_emitted h coder to tester', 'call_started h')
      .thenEffects('hand_off h');
  });

  test('it lets later calls go first in a sequential batch', () => {
    given(running(CODER), asked(handoff('h'), call('a', 'seq'), call('b', 'read')))
      .when(returned('a'))
      .thenEffects('call_tool b')
      .when(returned('b'))
      .thenEffects('hand_off h');
  });

  test('the first of two wins', () => {
    const outcome = given(running(CODER)).when(asked(handoff('h'), handoff('i', 'writer')), tookOver('h', TESTER));
    expect(results(outcome)).toEqual(['i error second_handoff', 'h ok']);
    outcome.thenCount('handoff_emitted', 1);
  });

  test('the second of two applies if the first was refused', () => {
    const rules = [
      { tool: 'handoff', when: 'to == "tester"', action: 'deny' as const },
      { tool: '*', action: 'allow' as const },
    ];
    const outcome = given(running({ ...CODER, rules })).when(asked(handoff('h'), handoff('i', 'writer')));
    expect(results(outcome)).toEqual(['h denied rule']);
    outcome.thenEffects('hand_off i');
  });

  test('a terminating tool does not end the run after a hand-off', () => {
    given(running(CODER), asked(call('a', 'done'), handoff('h')), returned('a'))
      .when(tookOver('h', TESTER))
      .thenIncludes('turn_end 1', 'turn_start 2');
  });
});

describe('is prevented', () => {
  test('by a rule that denies it, or asks about it', () => {
    const under = (action: 'ask' | 'deny') =>
      given(running({ ...CODER, rules: [{ tool: 'handoff', action }] })).when(asked(handoff('h')));
    under('deny').thenEvent('call_ended', { call_id: 'h', status: 'denied' }).thenIncludes('turn_start 2');
    under('ask').thenState('function_awaiting_approval.parked').thenNever('handoff_emitted');
  });

  test('until a person allows it', () => {
    given(running({ ...CODER, rules: [{ tool: 'handoff', action: 'ask' }] }), asked(handoff('h')))
      .when(approved('h', { args: { to: 'writer', brief: 'write it' } }))
      .thenIncludes('handoff_emitted h coder to writer')
      .thenEffects('hand_off h');
  });

  const watched: Surroundings = { ...CODER, hooks: [hook('OnHandoffEmitted', 'watch')] };

  test('by a hook that is called before the change', () => {
    given(running(watched))
      .when(asked(handoff('h')))
      .thenIncludes('handoff_emitted h coder to tester')
      .thenNever('call_started')
      .thenEffects('consult OnHandoffEmitted h')
      .thenEvent('hook_call', {
        point: 'OnHandoffEmitted',
        call_id: 'h',
        payload: {
          event: 'OnHandoffEmitted',
          session: { id: 's1' },
          persona: 'coder',
          turn: 1,
          to: 'tester',
          brief: 'test it',
        },
      })
      .when(hooksSaid({ deny: 'not today' }))
      .thenIncludes('turn_start 2')
      .thenEvent('hook_vetoed', { hook: 'watch', decision: 'deny', reason: 'not today', call_id: 'h' })
      .thenEvent('call_ended', { status: 'denied' });
  });

  test('by a hook that fails closed', () => {
    given(running(watched), asked(handoff('h')))
      .when(hooksSaid(new Failing()))
      .thenEvent('call_ended', { status: 'denied' });
  });

  test('not by one without an objection: the stop seam passes once more, and the call starts', () => {
    given(running(watched), asked(handoff('h')))
      .when(hooksSaid(undefined))
      .thenJournal(
        'hook_returned watch OnHandoffEmitted h no_objection',
        'consult_ended OnHandoffEmitted h',
        'loop_checkpoint pre_tool_dispatch',
        'call_started h',
      )
      .thenCount('handoff_emitted', 1);
  });

  test('not before the called hooks have answered, whatever happens to the table of hooks', () => {
    given(running(watched), asked(handoff('h')))
      .when(hooksChanged([]))
      .thenJournal('hooks_changed')
      .when(hooksSaid({ deny: 'not today' }))
      .thenEvent('call_ended', { status: 'denied' })
      .thenNever('call_started');
  });

  test('not by hooks that were removed before their call: the stop seam passes once more, and the call starts', () => {
    const guard = hook('user_prompt_submit', 'guard');
    given(running({ ...watched, hooks: [...(watched.hooks ?? []), guard] }), hooksSaid(undefined))
      .when(steered('s1'), asked(handoff('h')))
      .thenEffects('consult user_prompt_submit')
      .when(hooksChanged([guard]))
      .thenJournal('hooks_changed', 'loop_checkpoint pre_tool_dispatch', 'call_started h');
  });

  test('by an interrupt during the hooks', () => {
    given(running(watched), asked(handoff('h')), steered('s1', 'interrupt_immediate'))
      .when(hooksSaid(undefined))
      .thenIncludes('call_ended h skipped', 'turn_start 2')
      .thenNever('call_started');
  });

  test('by a preempting interrupt during the resolution of the other persona', () => {
    given(running(CODER), asked(handoff('h')), preempted('s1'))
      .when(tookOver('h', TESTER))
      .thenIncludes('call_ended h cancelled', 'turn_start 2')
      .thenCount('persona_changed', 1);
  });

  test('by a cancellation of the call, before or after it starts', () => {
    given(running(watched), asked(handoff('h')))
      .when(callCancelled('h'))
      .thenIncludes('call_ended h cancelled', 'turn_start 2')
      .when(hooksSaid(undefined))
      .thenNever('call_started');
    given(running(CODER), asked(handoff('h')), callCancelled('h'))
      .when(notTakenOver('h', 'cancelled'))
      .thenIncludes('call_ended h cancelled', 'turn_start 2');
  });

  test('by the end of the run', () => {
    given(running(CODER), asked(handoff('h')), cancelled())
      .when(tookOver('h', TESTER), toolsClosed)
      .thenIncludes('call_ended h cancelled', 'agent_end cancelled')
      .thenCount('persona_changed', 1);
    given(running(watched), asked(handoff('h')), cancelled())
      .when(hooksCancelled, toolsClosed)
      .thenIncludes('agent_end cancelled')
      .thenNever('call_started');
  });

  test(`by its bound: ${BOUNDS.handoffsMax} may follow one another, and the model that asks for more is told`, () => {
    const rally = Array.from({ length: BOUNDS.handoffsMax }, (_, i): Move => {
      const [to, around] = i % 2 === 0 ? ['tester', TESTER] : ['coder', CODER];
      return [asked(handoff(`h${i}`, to as string)), tookOver(`h${i}`, around as Surroundings)];
    });
    const outcome = given(running(CODER), ...rally).when(asked(handoff('more')));
    expect(results(outcome).at(-1)).toBe('more error too_many_handoffs');
    outcome.thenCount('persona_changed', BOUNDS.handoffsMax + 1).thenState('assistant_streaming.streaming');
    // A new message resets the number of hand-offs.
    outcome
      .when(followedUp('f1'), answered(), asked(handoff('again')))
      .thenIncludes('handoff_emitted again coder to tester');
  });
});

describe('the rest of the turn belongs to the old persona', () => {
  test('its hooks are called with the old persona’s name', () => {
    const hooks = [
      hook('post_turn', 'of-coder', { persona: 'coder' }),
      hook('post_turn', 'of-tester', { persona: 'tester' }),
    ];
    given(running({ ...CODER, hooks }), asked(handoff('h')))
      .when(tookOver('h', { ...TESTER, hooks }))
      .thenEvent('hook_call', {
        hook: 'of-coder',
        payload: { event: 'post_turn', session: { id: 's1' }, persona: 'coder', turn: 1 },
      })
      .when(hooksSaid(undefined), answered())
      .thenEvent('hook_call', {
        hook: 'of-tester',
        payload: { event: 'post_turn', session: { id: 's1' }, persona: 'tester', turn: 2 },
      });
  });

  test('its stop conditions no longer end the run, and the new ones do not apply yet', () => {
    const old = { ...CODER, stopWhen: [{ text: 'over to you' }, { tool: 'handoff' }, { predicate: 'enough' }] };
    const other = { ...TESTER, stopWhen: [{ tool: 'read' }] };
    given(running(old), asked(call('a', 'read'), handoff('h')), returned('a'))
      .when(tookOver('h', other))
      .thenIncludes('turn_end 1', 'turn_start 2')
      .thenNever('stop_predicates_asked')
      .when(asked(call('b', 'read')), returned('b'), toolsClosed)
      .thenIncludes('stop_condition_held tool read', 'agent_end stop_condition');
  });

  test('its step ends unfinished, and the new persona starts with its first step', () => {
    const step = (name: string) => ({ name, prompt: `Do ${name}.`, error_boundary: 'fail' as const });
    const outcome = given(running({ ...CODER, steps: [step('plan'), step('build')] }), asked(handoff('h')))
      .when(tookOver('h', { ...TESTER, steps: [step('run')] }))
      .thenIncludes(
        'step_finished plan unfinished',
        'persona_changed coder to tester',
        'step_started run',
        'turn_start 2',
      );
    expect(openStep(context(outcome))?.name).toBe('run');
  });
});

describe('queued messages', () => {
  test('are delivered to the new persona, after the briefing', () => {
    given(running(CODER), asked(handoff('h')), steered('s1'))
      .when(tookOver('h', TESTER))
      .thenIncludes(
        'message_injected h direct at handoff',
        'loop_checkpoint post_tool_dispatch delivers s1',
        'turn_start 2',
      );
  });

  test('a suspension starts at the boundary, and the new persona resumes from it', () => {
    given(running(CODER), suspended(), asked(handoff('h')))
      .when(tookOver('h', TESTER))
      .thenIncludes('persona_changed coder to tester', 'turn_end 1', 'suspended suspend-1');
  });
});

describe('remembered rules', () => {
  const rules = [
    { tool: 'ask', action: 'ask' as const },
    { tool: '*', action: 'allow' as const },
  ];
  const asking: Surroundings = { ...CODER, rules };
  test.each(['session', 'persona'] as const)(
    'for the %s apply to that persona alone, and again when it returns',
    (remember) => {
      const args = { path: 'x' };
      given(running(asking), asked(call('a', 'ask', { args })), approved('a', { remember }), returned('a'))
        .when(asked(handoff('h')), tookOver('h', { ...TESTER, rules }), asked(call('b', 'ask', { args })))
        .thenState('function_awaiting_approval.parked')
        .when(denied('b'), asked(handoff('i', 'coder')), tookOver('i', asking), asked(call('c', 'ask', { args })))
        .thenEffects('call_tool c');
    },
  );
});

describe('limits', () => {
  test('of turns restart for the new persona', () => {
    given(running({ ...CODER, maxTurns: 1 }), asked(handoff('h')))
      .when(tookOver('h', { ...TESTER, maxTurns: 2 }), asked(call('a', 'read')), returned('a'))
      .thenIncludes('turn_start 2', 'turn_start 3')
      .when(asked(call('b', 'read')), returned('b'), toolsClosed)
      .thenIncludes('agent_end max_turns');
  });

  test('of turns in the start continue over all of them', () => {
    given(running({ ...CODER, maxTurns: 2 }), asked(handoff('h')))
      .when(tookOver('h', { ...TESTER, maxTurns: 2, runLimits: { max_turns: 2 } }))
      .when(asked(call('a', 'read')), returned('a'), toolsClosed)
      .thenIncludes('agent_end max_turns');
  });

  test('of tokens count from the hand-off', () => {
    const outcome = given(running({ ...CODER, budgets: { tokens: 100 } }))
      .when(using(80, 10, asked(handoff('h'))))
      .thenIncludes('budget_threshold tokens 80%')
      .when(tookOver('h', { ...TESTER, budgets: { tokens: 60 } }));
    expect(budgetsOf(context(outcome))).toEqual([{ budget: 'tokens', used: 0, limit: 60 }]);
    outcome
      .when(using(5, 45, asked(call('a', 'read'))))
      .thenEvent('budget_threshold', { percent: 50, used: 50, limit: 60 })
      .thenEvent('budget_threshold', { percent: 80, used: 50, limit: 60 })
      .when(returned('a'), using(5, 5, answered()), toolsClosed)
      .thenIncludes('agent_end budget_exceeded');
  });

  test('of tokens in the start continue, and reported thresholds are not repeated', () => {
    const outcome = given(running({ ...CODER, budgets: { tokens: 100 } }))
      .when(using(50, 10, asked(handoff('h'))))
      .when(tookOver('h', { ...TESTER, budgets: { tokens: 100 }, runLimits: { tokens: 100 } }));
    // The one with the smaller rest applies to the run.
    expect(budgetsOf(context(outcome))).toEqual([{ budget: 'tokens', used: 60, limit: 100 }]);
    outcome
      .when(using(20, 5, answered()), toolsClosed)
      .thenEvent('budget_threshold', { percent: 80, used: 85, limit: 100 });
  });

  test('of time restart, with their timer', () => {
    given(running({ ...CODER, budgets: { wall_time_ms: 10_000 } }), asked(handoff('h')), later(4_000))
      .when(tookOver('h', { ...TESTER, budgets: { wall_time_ms: 2_000 } }))
      .thenEffects('call_model', 'timer time_budget at 5000')
      .when(later(2_000), timerFires)
      .thenEvent('budget_threshold', { budget: 'wall_time_ms', percent: 50 });
  });

  test('are those of the start again in the next run', () => {
    const outcome = given(
      handedOver({ ...CODER, budgets: { tokens: 100 } }, { ...TESTER, budgets: { tokens: 60 } }),
    ).when(answered(), toolsClosed, prompted());
    expect(context(outcome).relay).toEqual({ count: 0, from: null, owes: null, since: null });
  });
});
