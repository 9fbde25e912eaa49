/** What a session has used, run by run. */
import type { JournalRecord, SessionEvent } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { UsageCollector } from '../src/mod.ts';

function report(...events: Partial<SessionEvent>[]) {
  const collector = new UsageCollector();
  collector.add({ events } as unknown as JournalRecord);
  return collector.wireReport;
}

const begun = (run: number): Partial<SessionEvent> => ({ type: 'agent_start', run, persona: 'mate', model: 'a/b' });
const turn = (number: number, usage: object, cost_usd?: number) =>
  ({ type: 'turn_end', turn: number, usage, ...(cost_usd === undefined ? {} : { cost_usd }) }) as Partial<SessionEvent>;
const ended = (turns: number): Partial<SessionEvent> => ({ type: 'agent_end', turns, stop_reason: 'end_turn' });

test('turns are summed by run, and runs by session, without drifting', () => {
  const { runs, usage, cost_usd } = report(
    begun(1),
    turn(1, { input_tokens: 10, output_tokens: 1 }, 0.1),
    turn(2, { input_tokens: 20, output_tokens: 2, cached_input_tokens: 5 }, 0.2),
    ended(2),
    begun(2),
    turn(1, { input_tokens: 1, output_tokens: 1 }, 0.4),
  );
  expect(runs).toEqual([
    {
      run: 1,
      persona: 'mate',
      model: 'a/b',
      turns: 2,
      usage: { input_tokens: 30, output_tokens: 3, cached_input_tokens: 5 },
      cost_usd: 0.3,
      stop_reason: 'end_turn',
    },
    {
      run: 2,
      persona: 'mate',
      model: 'a/b',
      turns: 1,
      usage: { input_tokens: 1, output_tokens: 1 },
      cost_usd: 0.4,
      stop_reason: null,
    },
  ]);
  expect(usage).toEqual({ input_tokens: 31, output_tokens: 4, cached_input_tokens: 5 });
  expect(cost_usd).toBe(0.7);
});

test('a cost that is not known makes every sum that it is in unknown', () => {
  const used = { input_tokens: 1, output_tokens: 1 };
  const { runs, cost_usd } = report(
    begun(1),
    turn(1, used, 0.1),
    ended(1),
    begun(2),
    turn(1, used),
    turn(2, used, 0.1),
  );
  expect(runs.map((run) => run.cost_usd)).toEqual([0.1, null]);
  expect(cost_usd).toBeNull();
});

test('a turn that waits for its calls counts what its answers have used, once', () => {
  const usage = { input_tokens: 1_000_000, output_tokens: 0 };
  const answer = { type: 'message_complete', usage } as Partial<SessionEvent>;
  const price = { input_micro_usd: 3_000_000, cached_input_micro_usd: 0, output_micro_usd: 0 };
  const priced = { type: 'prices_changed', price } as Partial<SessionEvent>;
  const open = [begun(1), { type: 'turn_start', turn: 1 } as Partial<SessionEvent>, answer];
  expect(report(priced, ...open)).toMatchObject({ usage, cost_usd: 3, runs: [{ turns: 1, usage, cost_usd: 3 }] });
  // Without a price nothing is said: 0 would be a claim.
  expect(report(...open)).toMatchObject({ usage, cost_usd: null });
  expect(report(...open, turn(1, usage, 2))).toMatchObject({ usage, cost_usd: 2 });
});

test('turns are summed by persona, too: one is the persona’s that began it, and open ones count', () => {
  const used = (input_tokens: number) => ({ input_tokens, output_tokens: 0 });
  const start = (number: number) => ({ type: 'turn_start', turn: number }) as Partial<SessionEvent>;
  const handedTo = (name: string) =>
    ({
      type: 'persona_changed',
      provision: { persona: { name, version: '1' }, model: { name: `on/${name}` } },
    }) as never;
  const answer = { type: 'message_complete', usage: used(100) } as Partial<SessionEvent>;
  const { persona, model, personas } = report(
    begun(1),
    start(1),
    handedTo('clerk'),
    turn(1, used(1), 0.1),
    start(2),
    turn(2, used(10), 0.2),
    start(3),
    answer,
  );
  expect({ persona, model }).toEqual({ persona: 'clerk', model: 'on/clerk' });
  expect(personas).toEqual([
    { persona: 'mate', model: 'a/b', turns: 1, usage: used(1), cost_usd: 0.1 },
    { persona: 'clerk', model: 'on/clerk', turns: 2, usage: used(110), cost_usd: null },
  ]);
});

test('a session without a run has used nothing', () => {
  const nothing = { usage: { input_tokens: 0, output_tokens: 0 }, cost_usd: 0 };
  expect(report()).toEqual({ persona: null, model: null, runs: [], personas: [], ...nothing });
});
