/** Limits of a run, from where they are said to how the run ends. */
import type { JsonObject } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { ask, call, say } from './fake-model.ts';
import { taking } from './fake-tools.ts';
import { ASKING, refOf, testBed } from './test-bed.ts';

const HOUR = 3_600_000;
const PRICES = [
  { model: 'fake/cheap*', input: 1, output: 1 },
  { model: 'fake/*', input: 3, cached_input: 0.3, output: 15 },
];

describe('the limits of a run are the stricter ones of its start and its persona', () => {
  const cases: [persona: JsonObject, start: JsonObject, holds: JsonObject][] = [
    [{ max_turns: 5 }, { max_turns: 9 }, { max_turns: 5 }],
    [{ max_turns: 9 }, { max_turns: 5 }, { max_turns: 5 }],
    [{ max_turns: 9 }, { limits: { max_turns: 5 } }, { max_turns: 5 }],
    [{ max_turns: 9 }, { max_turns: 6, limits: { max_turns: 7 } }, { max_turns: 6 }],
    [{}, { max_turns: 200 }, { max_turns: 200 }],
    [{ parallel_calls: 2 }, { limits: { parallel_calls: 4 } }, { parallel_calls: 2 }],
    [{ tokens: 100 }, { limits: { tokens: 50 } }, { budgets: { limits: { tokens: 50 } } }],
    [{ tokens: 100 }, { limits: { tokens: 500 } }, { budgets: { limits: { tokens: 100 } } }],
    [{ usd: 0.1 }, { limits: { usd: 0.3 } }, { budgets: { limits: { nano_usd: 100_000_000 } } }],
    [{}, { limits: { usd: 0.3 } }, { budgets: { limits: { nano_usd: 300_000_000 } } }],
    [
      { wall_time_ms: 9_000 },
      { limits: { tokens: 7 } },
      { budgets: { limits: { tokens: 7, wall_time_ms: 9_000 }, thresholds: [50, 80, 95, 100] } },
    ],
  ];
  test.each(cases)('persona %j, start %j: %j', async (persona, start, holds) => {
    const bed = testBed();
    await bed.host({}, { prices: PRICES });
    await bed.start({ persona: { name: 'mate', limits: persona }, ...start });
    expect((await bed.eventsOf('persona_changed'))[0]?.provision).toMatchObject(holds);
  });

  test('thresholds are the persona’s, sorted, without duplicates, and with 100', async () => {
    const bed = testBed();
    await bed.host();
    await bed.start({ persona: { name: 'mate', limits: { tokens: 9 }, budget_thresholds: [90, 10, 90] } });
    const [changed] = await bed.eventsOf('persona_changed');
    expect(changed?.provision.budgets?.thresholds).toEqual([10, 90, 100]);
  });
});

describe('money', () => {
  test('the first row of the table that matches the model is the price of the run', async () => {
    const bed = testBed();
    bed.models.answers = [say('done')];
    await bed.host({}, { prices: PRICES });
    await bed.start({ model: 'fake/cheap-1', limits: { usd: 1 } });
    expect((await bed.eventsOf('prices_changed'))[0]?.price).toEqual({
      pattern: 'fake/cheap*',
      input_micro_usd: 1_000_000,
      cached_input_micro_usd: 1_000_000,
      output_micro_usd: 1_000_000,
    });
    expect((await bed.eventsOf('agent_end'))[0]?.cost_usd).toBe(0.000_012);
  });

  test('a limit in USD is rejected if the price is unknown, before a model is asked', async () => {
    const bed = testBed();
    const host = await bed.host({}, { prices: PRICES });
    await bed.start({ model: 'other/model', limits: { usd: 1 } });
    expect(await bed.lines()).toContain('run_failed provisioning price_unknown');
    expect((await bed.eventsOf('run_failed'))[0]?.error.message).toMatch(/other\/model.*COX_PRICES/);
    expect(await host.status(refOf())).toMatchObject({ cost_usd: null });
    expect(bed.models.requests).toEqual([]);
    expect(bed.toolSource.specs).toEqual([]);
  });

  test('without a limit in USD, an unknown price is accepted', async () => {
    const bed = testBed();
    await bed.host();
    await bed.start({ limits: { tokens: 1_000 } });
    expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
  });

  test('a price that is added later applies from the next run', async () => {
    const bed = testBed();
    const first = await bed.host();
    await bed.start();
    first.abandon();
    await bed.host({}, { prices: PRICES });
    await bed.send('prompt', 'again');
    expect((await bed.eventsOf('agent_end')).map(({ cost_usd }) => cost_usd)).toEqual([undefined, 0.000_06]);
  });

  test('usage and cost are part of the state', async () => {
    const bed = testBed();
    bed.models.answers = [ask(call('c1', 'read')), say('done')];
    const host = await bed.host({}, { prices: PRICES });
    await bed.start({ limits: { usd: 1, tokens: 100, wall_time_ms: 60_000 } });
    expect(await host.status(refOf())).toMatchObject({
      cost_usd: 0.000_12,
      budgets: [
        { budget: 'tokens', used: 24, limit: 100 },
        { budget: 'usd', used: 0.000_12, limit: 1 },
        { budget: 'wall_time_ms', used: 0, limit: 60_000 },
      ],
    });
  });
});

test('a run ends when its token budget is exhausted, and the next prompt continues', async () => {
  const bed = testBed();
  bed.models.answers = [ask(call('c1', 'read')), ask(call('c2', 'read')), say('done')];
  await bed.host();
  await bed.start({ limits: { tokens: 24 } });
  expect((await bed.lines()).slice(-8)).toEqual([
    'message_complete asks c2',
    'budget_threshold tokens 80%',
    'budget_threshold tokens 95%',
    'budget_threshold tokens 100%',
    'call_ended c2 aborted',
    'turn_end 2',
    'tools_closed',
    'agent_end budget_exceeded',
  ]);
  await bed.send('prompt', 'go on');
  expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
  // Every prompt pairs calls with results, that of the run that was cut short too.
  const shown = bed.models.requests.at(-1)?.messages.filter(({ role }) => role === 'tool');
  expect(shown?.map((message) => 'status' in message && message.status)).toEqual(['ok', 'aborted']);
});

test('the count survives a crash of the host', async () => {
  const bed = testBed();
  bed.tools = {
    read: {
      traits: { idempotent: true },
      run: (_call, _signal, clock) =>
        clock.sleep(1_000).then(() => ({ status: 'ok', result: { content: [], is_error: false } })),
    },
  };
  bed.models.answers = [ask(call('c1', 'read')), ask(call('c2', 'read'))];
  const first = await bed.host();
  await bed.start({ limits: { tokens: 24, wall_time_ms: 100_000 } });
  first.abandon();
  await bed.host();
  await bed.time.advance(5_000);
  expect((await bed.lines()).at(-1)).toBe('agent_end budget_exceeded');
  expect((await bed.eventsOf('budget_threshold')).map(({ percent }) => percent)).toEqual([50, 80, 95, 100]);
});

describe('time runs out while a run waits:', () => {
  test('for an approval', async () => {
    const bed = testBed();
    bed.models.answers = [ask(call('c1', 'ask'))];
    bed.tools = { ask: {} };
    await bed.host();
    await bed.start({ permissions: ASKING, limits: { wall_time_ms: 60_000 } });
    await bed.time.advance(59_999);
    expect((await bed.lines()).at(-1)).toBe('budget_threshold wall_time_ms 95%');
    await bed.time.advance(1);
    expect((await bed.lines()).at(-1)).toBe('agent_end budget_exceeded');
  });

  test('for a tool, also when another host has taken the session over', async () => {
    const bed = testBed();
    bed.tools = { read: { traits: { idempotent: true }, run: taking(3_600_000) } };
    bed.models.answers = [ask(call('c1', 'read'))];
    const first = await bed.host();
    await bed.start({ limits: { wall_time_ms: 60_000 } });
    await bed.time.advance(20_000);
    first.abandon();
    await bed.time.advance(20_000);
    await bed.host();
    await bed.time.advance(20_000);
    expect((await bed.lines()).at(-1)).toBe('agent_end budget_exceeded');
    expect((await bed.eventsOf('budget_threshold')).map(({ used }) => used)).toEqual([40_000, 48_000, 57_000, 60_000]);
  });

  test('for an approval, when its session has left memory and its host was restarted five times', async () => {
    const bed = testBed();
    bed.models.answers = [ask(call('c1', 'ask'))];
    bed.tools = { ask: {} };
    const options = { sweepEveryMs: 60_000 };
    let host = await bed.host(options);
    await bed.start({ permissions: ASKING, limits: { wall_time_ms: 11 * HOUR } });
    for (let restart = 1; restart <= 5; restart++) {
      await bed.time.advance(1.5 * HOUR);
      // A session that only waits costs no memory, and the clock that it is waited by stands in the store.
      expect(host.live).toBe(0);
      if (restart % 2 === 0) await host.stop();
      else host.abandon();
      // The fourth time nobody is there when the next threshold is due.
      if (restart === 4) await bed.time.advance(3 * HOUR);
      host = await bed.host(options);
    }
    await bed.time.advance(2 * HOUR);
    expect((await bed.lines()).at(-1)).toBe('agent_end budget_exceeded');
    expect((await bed.eventsOf('budget_threshold')).map(({ percent, used }) => [percent, used])).toEqual([
      [50, 5.5 * HOUR],
      [80, 9 * HOUR],
      [95, 10.45 * HOUR],
      [100, 11 * HOUR],
    ]);
    expect(host.live).toBe(0);
  });

  test('and not by the timer of an earlier run', async () => {
    const bed = testBed();
    bed.models.answers = [say('done'), say('slow', { delayMs: 90_000 })];
    await bed.host();
    await bed.start({ limits: { wall_time_ms: 60_000 } });
    await bed.time.advance(25_000);
    const before = (await bed.records()).length;
    await bed.time.advance(20_000);
    expect(await bed.records()).toHaveLength(before);
    await bed.send('prompt', 'again');
    await bed.time.advance(29_999);
    expect(await bed.eventsOf('budget_threshold')).toEqual([]);
    await bed.time.advance(1);
    expect((await bed.lines()).slice(-2)).toEqual(['timer_fired time_budget', 'budget_threshold wall_time_ms 50%']);
  });
});
