/**
 * Not by chance but one after another: one session that does some of everything, whose host is killed just after its
 * first await, its second, and so on to its last; then the same with a second host that starts there.
 */
import { HookRegistration } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { call } from '../../libs/session/test/fake-model.ts';
import { type NemesisAct, NO_FAULTS, type PlannedAnswer, type PlannedCommand, type Schedule } from './generator.ts';
import { runSchedule } from './simulate.ts';

const answer = (more: Partial<PlannedAnswer>): PlannedAnswer => ({
  text: '',
  calls: [],
  delayMs: 20,
  fails: false,
  deaf: false,
  ...more,
});
const command = (atMs: number, verb: string, body: object): PlannedCommand => ({
  atMs,
  session: 's1',
  verb,
  payload: Buffer.from(JSON.stringify(body), 'utf8'),
  id: `${verb}-${atMs}`,
  tell: true,
});

/** A batch of four, one of them parked and one remote; hooks, steering in two modes, a follow-up, a large prompt, a second run. */
function schedule(seed: number, nemesis: readonly NemesisAct[]): Schedule {
  const rules = [
    { tool: 'ask_*', action: 'ask' },
    { tool: '*', action: 'allow' },
  ];
  return {
    seed,
    profile: 'every await',
    hosts: 1,
    faults: NO_FAULTS,
    hooks: [HookRegistration.parse({ id: 'look', point: 'post_turn', timeout_ms: 100, on_error: 'fail_open' })],
    sessions: [
      {
        id: 's1',
        answers: [
          answer({
            calls: [
              call('a0c0', 'look', { n: 1 }),
              call('a0c1', 'count', { n: 2 }),
              call('a0c2', 'ask_count', { n: 3 }),
              call('a0c3', 'remote_count', { n: 4 }),
            ],
          }),
          answer({ calls: [call('a1c0', 'big', { n: 5 }), call('a1c1', 'count', { n: 6 })] }),
          answer({ text: 'done' }),
        ],
      },
    ],
    commands: [
      command(10, 'start', { prompt: 'long '.repeat(20_000), model: 'sim/model', permissions: { rules } }),
      command(60, 'steer', { body: 'look here' }),
      command(200, 'approve', { call_id: 'a0c2', decision: 'allow' }),
      command(201, 'approve', { call_id: 'a0c2', decision: 'deny' }),
      command(220, 'followup', { body: 'and then' }),
      command(4_000, 'steer', { body: 'wait', mode: 'interrupt' }),
      command(8_000, 'prompt', { body: 'once more' }),
    ],
    nemesis,
    attentive: 0,
    meddling: 0,
  };
}

const STEPS = 4;

test.each([
  ['crash_at_await', 0],
  ['crash_at_await', 1],
  ['crash_at_await', 2],
  ['crash_at_await', 3],
  ['rival_at_await', 0],
  ['rival_at_await', 1],
  ['rival_at_await', 2],
  ['rival_at_await', 3],
] as const)('%s, at every fourth of all awaits from %i on', { timeout: 60_000 }, async (kind, from) => {
  // One seed for all, so that everything is the same up to the moment at which it strikes.
  const seed = from + 1;
  const { awaits, problems } = await runSchedule(schedule(seed, []));
  expect(problems).toEqual([]);
  expect(awaits).toBeGreaterThan(100);
  for (let at = from + 1; at <= awaits; at += STEPS) {
    const { problems, history } = await runSchedule(schedule(seed, [{ kind, atMs: 0, awaits: at, downMs: 700 }]));
    expect(problems, `${kind} ${at}`).toEqual([]);
    const struck = history
      .of('host')
      .filter(({ did }, index) => did === 'is killed' || (did === 'starts' && index > 0));
    expect(struck, `${kind} ${at} struck`).not.toEqual([]);
  }
});
