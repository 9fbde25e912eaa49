/**
 * Budgets of a run: tokens, money, time. Each threshold is reported once, and the run ends cleanly.
 */
import { describe, expect, test } from 'vitest';
import { budgetsOf, type SessionState } from '../src/mod.ts';
import { given } from './given.ts';
import {
  answered,
  asked,
  call,
  cancelled,
  followedUp,
  hook,
  hooksChanged,
  hooksSaid,
  later,
  type Move,
  modelStopped,
  owned,
  prompted,
  provisioned,
  reminded,
  resumed,
  returned,
  revoked,
  running,
  sessionFailed,
  started,
  steered,
  suspended,
  timerFires,
  toolsClosed,
  using,
} from './moves.ts';

const PRICE = {
  pattern: 'scripted/*',
  input_micro_usd: 3_000_000,
  cached_input_micro_usd: 300_000,
  output_micro_usd: 15_000_000,
};
/** One turn with these tokens, after which the run continues. */
const turn = (input: number, output: number, id = 'a'): Move => [
  using(input, output, asked(call(id, 'read'))),
  returned(id),
];

describe('a threshold', () => {
  test('is reported once, with the usage', () => {
    given(running({ budgets: { tokens: 100 } }), turn(20, 20))
      .when(using(10, 5, asked(call('b', 'read'))))
      .thenIncludes('message_complete asks b', 'budget_threshold tokens 50%', 'call_started b')
      .thenEvent('budget_threshold', { budget: 'tokens', percent: 50, used: 55, limit: 100 })
      .when(returned('b'), using(10, 5, asked(call('c', 'read'))))
      .thenCount('budget_threshold', 1);
  });

  test('is reported with all others that were passed at the same time, in order', () => {
    given(running({ budgets: { tokens: 100 } }))
      .when(using(10, 86, asked(call('a', 'read'))))
      .thenIncludes('budget_threshold tokens 50%', 'budget_threshold tokens 80%', 'budget_threshold tokens 95%')
      .thenCount('budget_threshold', 3)
      .thenEffects('call_tool a');
  });

  test('can be set by the persona', () => {
    given(running({ budgets: { tokens: 100 }, thresholds: [33, 100] }))
      .when(turn(30, 2))
      .thenNever('budget_threshold')
      .when(turn(0, 1, 'b'))
      .thenIncludes('budget_threshold tokens 33%');
  });

  test('is reported once per run: the next run starts from zero', () => {
    given(
      running({ budgets: { tokens: 100 } }),
      using(10, 40, answered()),
      toolsClosed,
      prompted(),
      provisioned({ budgets: { tokens: 100 } }),
    )
      .when(using(10, 40, answered()), toolsClosed)
      .thenIncludes('budget_threshold tokens 50%', 'agent_end end_turn')
      .thenCount('budget_threshold', 2);
  });

  test('is rounded up: a third of a budget is not reached early', () => {
    given(running({ budgets: { tokens: 10 }, thresholds: [33, 100] }))
      .when(using(0, 3, asked(call('a', 'read'))))
      .thenNever('budget_threshold')
      .when(returned('a'), using(0, 1, asked(call('b', 'read'))))
      .thenIncludes('budget_threshold tokens 33%');
  });

  test('is not reported without a budget', () => {
    given(running())
      .when(using(1e9, 1e9, answered()), toolsClosed)
      .thenNever('budget_threshold');
  });
});

describe('at 100 percent the run ends with its results so far', () => {
  test('calls of the last answer do not start, and have results', () => {
    given(running({ budgets: { tokens: 100 } }))
      .when(using(50, 50, asked(call('a', 'read'), call('b', 'ask'))), toolsClosed)
      .thenJournal(
        'message_complete asks a b',
        'budget_threshold tokens 50%',
        'budget_threshold tokens 80%',
        'budget_threshold tokens 95%',
        'budget_threshold tokens 100%',
        'call_ended a aborted',
        'call_ended b aborted',
        'turn_end 1',
        'loop_checkpoint loop_exit',
        'tools_closed',
        'agent_end budget_exceeded',
      )
      .thenEvent('agent_end', { reason: 'the token budget is exhausted: 100 of 100 used', turns: 1 })
      .thenState('stopped');
  });

  test('one token below it does not end', () => {
    given(running({ budgets: { tokens: 100 } }))
      .when(using(0, 99, asked(call('a', 'read'))))
      .thenIncludes('call_started a');
  });

  test('an answer that uses the rest is kept whole', () => {
    given(running({ budgets: { tokens: 100 } }))
      .when(using(50, 60, answered('all of it')), toolsClosed)
      .thenIncludes(
        'message_complete "all of it"',
        'budget_threshold tokens 100%',
        'turn_end 1',
        'agent_end budget_exceeded',
      );
  });

  test('no queue is drained: queued messages stay for the next run', () => {
    given(running({ budgets: { tokens: 100 } }), steered('m'), followedUp('f'))
      .when(using(50, 60, answered()), toolsClosed)
      .thenIncludes('agent_end budget_exceeded pending 2')
      .thenNever('message_injected')
      .when(prompted(), provisioned({ budgets: { tokens: 100 } }))
      .thenIncludes('loop_checkpoint iteration_start delivers m');
  });

  test('a later cancel does not change how the run ended', () => {
    given(running({ budgets: { wall_time_ms: 1_000 } }), asked(call('a', 'read')), later(1_000), steered('m'))
      .when(cancelled(), returned('a', 'cancelled'), toolsClosed)
      .thenIncludes('agent_end budget_exceeded pending 1');
  });

  test('a cancelled run reports no budget', () => {
    given(running({ budgets: { tokens: 10 } }), cancelled())
      .when(using(50, 50, modelStopped('half')), toolsClosed)
      .thenIncludes('agent_end cancelled')
      .thenNever('budget_threshold');
  });

  test('a failing run reports no budget', () => {
    given(running({ budgets: { wall_time_ms: 10 } }), later(50))
      .when(sessionFailed)
      .thenNever('budget_threshold');
  });
});

describe('no answer starts that a budget cannot cover', () => {
  // A prompt only grows: the next one needs at least the input tokens of the last one.
  test('the run ends after the turn if the next one needs more than is left; its calls run', () => {
    given(running({ budgets: { tokens: 100 } }), using(40, 21, asked(call('a', 'read'))))
      .when(returned('a'), toolsClosed)
      .thenIncludes(
        'call_ended a ok',
        'loop_checkpoint post_tool_dispatch',
        'budget_threshold tokens 100% uncovered',
        'turn_end 1',
        'agent_end budget_exceeded',
      )
      .thenEvent('budget_threshold', { percent: 100, used: 61, limit: 100, needed: 40 })
      .thenEvent('agent_end', {
        reason: 'the token budget cannot cover another model response: 61 of 100 used, at least 40 more needed',
      })
      .thenCount('turn_start', 1);
  });

  test('it starts if exactly enough is left', () => {
    given(running({ budgets: { tokens: 100 } }), using(40, 20, asked(call('a', 'read'))))
      .when(returned('a'))
      .thenIncludes('turn_start 2')
      .thenEffects('call_model');
  });

  test('then the last seam delivers nothing: steering stays for the next run', () => {
    given(running({ budgets: { tokens: 100 } }), steered('m'), using(60, 1, answered()))
      .when(toolsClosed)
      .thenIncludes('agent_end budget_exceeded pending 1')
      .thenNever('message_injected');
  });

  test('a plain answer without queued messages ends the run as without a budget', () => {
    given(running({ budgets: { tokens: 100 } }))
      .when(using(60, 1, answered()), toolsClosed)
      .thenIncludes('loop_checkpoint iteration_end', 'agent_end end_turn')
      .thenNever('budget_threshold tokens 100%');
  });

  test('money is counted at the price of cached input: the minimum cost', () => {
    // 100,000 tokens in: $0.30, or $0.03 from the cache; $0.32 leaves less than that.
    given(running({ budgets: { nano_usd: 320_000_000 }, price: PRICE }), using(100_000, 0, asked(call('a', 'read'))))
      .when(returned('a'))
      .thenEvent('budget_threshold', { budget: 'usd', percent: 100, used: 0.3, limit: 0.32, needed: 0.03 });
    given(running({ budgets: { nano_usd: 330_000_000 }, price: PRICE }), using(100_000, 0, asked(call('a', 'read'))))
      .when(returned('a'))
      .thenIncludes('turn_start 2');
  });
});

describe('an answer starts if its prompt may be shorter than the last, because its need is unknown:', () => {
  const budgets = { tokens: 100 };
  const large = using(60, 1, asked(call('a', 'read')));

  test.each<[string, Move]>([
    ['where a compaction is due', running({ budgets, compaction: { window: 70, reserve: 20, keep_turns: 0 } })],
    ['where hooks shape prompts', running({ budgets, hooks: [hook('transform_context')] })],
    ['where the persona shapes them', running({ budgets, transformContext: { last_n_turns: 1 } })],
    [
      'where a reminder is shown for the last time',
      [started(), reminded('r', 'finish_step', { ttl_turns: 1 }), provisioned({ budgets })],
    ],
  ])('%s', (_name, way) => {
    const hooked = (state: SessionState) => (state.context.consult ? [hooksSaid(undefined)] : []);
    const { session } = given(way).when();
    session.make(...hooked(session.state), large, returned('a'));
    expect(session.lines()).toContain('turn_start 2');
    expect(session.lines()).not.toContain('budget_threshold tokens 100% uncovered');
  });

  test('otherwise it does not start', () => {
    given(running({ budgets, compaction: { window: 700, reserve: 20, keep_turns: 0 } }), large)
      .when(returned('a'), toolsClosed)
      .thenIncludes('budget_threshold tokens 100% uncovered', 'agent_end budget_exceeded');
  });

  test('nor is the need of the first prompt after a cleared reminder known', () => {
    given(started(), reminded('r'), provisioned({ budgets }), large)
      .when(revoked('r'), returned('a'))
      .thenIncludes('reminder_expired r cleared', 'turn_start 2');
  });
});

describe('money', () => {
  test('the price is recorded once, before the run starts', () => {
    given(started())
      .when(provisioned({ price: PRICE }))
      .thenIncludes('persona_changed', 'prices_changed', 'agent_start run 1')
      .when(answered(), toolsClosed, prompted(), provisioned({ price: PRICE }))
      .thenCount('prices_changed', 1)
      .when(answered(), toolsClosed, prompted('p3'), provisioned())
      .thenCount('prices_changed', 2)
      .thenEvent('prices_changed', { price: null });
  });

  test('the ends of each turn and of the run contain the cost', () => {
    given(running({ price: PRICE }), turn(1_000, 100))
      .when(using(2_000, 10, answered()), toolsClosed)
      .thenEvent('turn_end', { turn: 2, cost_usd: 0.00615 })
      .thenEvent('agent_end', { cost_usd: 0.01065 });
  });

  test('without a price no cost is recorded', () => {
    const { session } = given(running()).when(using(1_000, 100, answered()), toolsClosed);
    expect(session.state.context.total_cost).toBeNull();
    expect(JSON.stringify(session.steps.map(({ events }) => events))).not.toContain('cost_usd');
  });

  test('a budget in USD ends the run', () => {
    given(running({ budgets: { nano_usd: 10_000_000 }, price: PRICE }))
      .when(using(1_000, 500, answered()), toolsClosed)
      .thenEvent('budget_threshold', { budget: 'usd', percent: 100, used: 0.0105, limit: 0.01 })
      .thenIncludes('agent_end budget_exceeded');
  });

  test('is summed in integers: sixty answers cost exactly sixty times one', () => {
    const session = given(running({ price: { ...PRICE, input_micro_usd: 37_500 }, maxTurns: 100 }));
    const many = Array.from({ length: 60 }, (_, i) => turn(1, 0, `c${i}`));
    expect(session.when(...many).session.state.context.run_cost).toBe(60 * 38);
  });
});

describe('time', () => {
  test('counts in the next job of a daemon that hooks kept from suspending', () => {
    given(
      running({ daemon: true, budgets: { wall_time_ms: 1_000 }, hooks: [hook('pre_suspend')] }),
      answered(),
      later(5_000),
    )
      .when(suspended('s'), steered('m'), hooksSaid({ block: true }))
      .thenIncludes('turn_start 2')
      .thenNever('budget_threshold')
      .when(later(500), reminded('r'))
      .thenEvent('budget_threshold', { budget: 'wall_time_ms', percent: 50, used: 500, limit: 1_000 });
  });

  test('counts from the start of the run, also during an approval', () => {
    given(running({ budgets: { wall_time_ms: 1_000 } }), later(400), asked(call('a', 'ask')), later(99))
      .when(reminded('r1'))
      .thenNever('budget_threshold')
      .when(later(1), reminded('r2'))
      .thenEvent('budget_threshold', { budget: 'wall_time_ms', percent: 50, used: 500, limit: 1_000 })
      .when(later(500), reminded('r3'), toolsClosed)
      .thenIncludes(
        'budget_threshold wall_time_ms 80%',
        'budget_threshold wall_time_ms 95%',
        'budget_threshold wall_time_ms 100%',
        'approval_decided a aborted',
        'call_ended a aborted',
        'agent_end budget_exceeded pending 3',
      );
  });

  test('aborts running calls, and keeps their output', () => {
    given(
      running({ budgets: { wall_time_ms: 1_000 } }),
      asked(call('a', 'read'), call('b', 'read')),
      returned('a'),
      later(1_000),
    )
      .when(steered('m'))
      .thenEffects('call_tool b aborted')
      .when(returned('b', 'cancelled'), toolsClosed)
      .thenIncludes('call_ended b cancelled', 'turn_end 1', 'agent_end budget_exceeded pending 1');
  });

  test('aborts a streaming answer, and keeps its text', () => {
    given(running({ budgets: { wall_time_ms: 1_000 } }), later(1_000), steered('m'))
      .when(modelStopped('half'), toolsClosed)
      .thenIncludes('message_complete partial "half"', 'turn_end 1', 'agent_end budget_exceeded pending 1');
  });

  test('does not pass while the session is suspended', () => {
    given(
      running({ budgets: { wall_time_ms: 1_000 } }),
      later(300),
      steered('m'),
      suspended(),
      answered(),
      later(86_400_000),
    )
      .when(resumed(), later(199), reminded('r1'))
      .thenNever('budget_threshold')
      .when(later(1), reminded('r2'))
      .thenEvent('budget_threshold', { percent: 50, used: 500 });
  });

  test('never runs backwards if a host’s clock is behind', () => {
    given(running({ budgets: { wall_time_ms: 1_000 } }), later(-5_000))
      .when(reminded('r'))
      .thenNever('budget_threshold');
  });

  test('does not count once the run has ended', () => {
    const { session } = given(running({ budgets: { wall_time_ms: 1_000 } }), later(10), answered(), toolsClosed).when(
      later(60_000),
      steered('m'),
    );
    expect(budgetsOf(session.state.context)).toEqual([{ budget: 'wall_time_ms', used: 10, limit: 1_000 }]);
  });
});

describe('a timer reports a threshold', () => {
  const around = { budgets: { wall_time_ms: 1_000 } };

  test('during an approval, and ends the run there', () => {
    given(running(around), asked(call('a', 'ask')), later(500))
      .when(timerFires)
      .thenJournal('timer_fired time_budget', 'budget_threshold wall_time_ms 50%')
      .thenEffects('timer time_budget at 800')
      .when(later(300), timerFires)
      .thenEffects('timer time_budget at 950')
      .when(later(150), timerFires, later(50), timerFires, toolsClosed)
      .thenIncludes('budget_threshold wall_time_ms 100%', 'call_ended a aborted', 'agent_end budget_exceeded');
  });

  test('once: after a threshold was reported otherwise, the timer only sets the next one', () => {
    given(running(around), later(500), steered('m'))
      .when(timerFires)
      .thenJournal('timer_fired time_budget')
      .thenEffects('call_model', 'timer time_budget at 800');
  });

  test('that a hook adds during the run', () => {
    const added = [hook('OnBudgetThreshold', 'h', { pct: 20 })];
    given(running(around), asked(call('a', 'ask')), later(100))
      .when(hooksChanged(added))
      .thenEffects('timer time_budget at 200')
      .when(later(100), timerFires)
      .thenIncludes('budget_threshold wall_time_ms 20%', 'hook_call h OnBudgetThreshold');
  });

  test('with the same timer after another host claims the session', () => {
    given(running(around), asked(call('a', 'ask')))
      .when(owned(2))
      .thenEffects('timer time_budget at 500');
  });

  test('and not with a timer of another run, or of another time', () => {
    const earlier = { type: 'timer', effect_id: '2-0', due_at_ms: 500 } as const;
    const outcome = given(running(around), answered(), toolsClosed, prompted('again'), provisioned(around)).when(
      earlier,
    );
    outcome.thenNothing('no pending timer 2-0');
    given(running(around))
      .when({ ...earlier, due_at_ms: 501 })
      .thenNothing();
  });

  test('not during a suspension, and later by its duration', () => {
    given(running(around), later(100), suspended(), steered('m'))
      .when(answered(), later(10_000))
      .thenEffects()
      .when(resumed())
      .thenEffects('call_model', 'timer time_budget at 10500');
  });

  test('not for an idle daemon, and not for a run without a time budget', () => {
    given(running({ ...around, daemon: true }))
      .when(answered())
      .thenEffects();
    given(running({ budgets: { tokens: 5_000 } }))
      .when(owned(2))
      .thenEffects('call_model');
  });

  test('not for a run that is ending', () => {
    given(running(around), asked(call('a', 'read')))
      .when(cancelled())
      .thenEffects('call_tool a aborted');
  });
});

describe('a daemon', () => {
  const around = { daemon: true, budgets: { tokens: 100, wall_time_ms: 1_000 } };

  test('counts each job from its last idling, in tokens and time', () => {
    given(running(around), using(10, 50, answered()), later(86_400_000))
      .when(followedUp('f'), using(10, 50, answered()))
      .thenIncludes('budget_threshold tokens 50%')
      .thenCount('budget_threshold', 2)
      .thenState('daemon_idle.waiting');
  });

  test('ends by a budget like any other session', () => {
    given(running(around), answered(), later(5_000), followedUp('f'), later(1_000))
      .when(steered('m'), modelStopped(), toolsClosed)
      .thenIncludes('budget_threshold wall_time_ms 100%', 'agent_end budget_exceeded pending 1');
  });
});

test('several budgets are independent; the first that is used up ends the run', () => {
  given(running({ budgets: { tokens: 1_000, nano_usd: 10_000_000, wall_time_ms: 60_000 }, price: PRICE }))
    .when(using(100, 640, answered()), toolsClosed)
    .thenIncludes('budget_threshold tokens 50%', 'budget_threshold usd 50%', 'agent_end end_turn')
    .thenCount('budget_threshold', 4);
});
