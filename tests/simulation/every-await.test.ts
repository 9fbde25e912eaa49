/**
 * A systematic search: one session that does some of everything. Its host is killed just after its first await, its
 * second, and so on to its last; then the same with a second host that starts there.
 */
import { HookRegistration } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { call } from '../../libs/session/test/fake-model.ts';
import { type NemesisAct, NO_FAULTS, type PlannedAnswer, type Schedule } from './generator.ts';
import type { PlannedCommand } from './plan-commands.ts';
import { planSuspension } from './plan-suspension.ts';
import { createRandom } from './random.ts';
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

/**
 * A session that sleeps: it parks itself for a while, has a call taken up, is suspended until a signal, has messages
 * taken back, replaced, collapsed, reminders that run out, a budget, a predicate to ask, and idles as a daemon.
 */
function sleeping(seed: number, nemesis: readonly NemesisAct[]): Schedule {
  const persona = {
    name: 'sleeper',
    daemon: { wake_interval_ms: 3_000 },
    stop_when: [{ predicate: 'never' }],
    budget_thresholds: [1, 100],
  };
  const limits = { tokens: 500, wall_time_ms: 60_000 };
  const start = { prompt: 'hello', model: 'sim/model', persona, limits, permissions: { default: 'allow' } };
  return {
    ...schedule(seed, nemesis),
    hooks: [],
    sessions: [
      {
        id: 's1',
        tokensPerMessage: 5,
        answers: [
          answer({ calls: [call('a0c0', 'park', { n: shortNap() })] }),
          answer({
            calls: [
              call('a1c0', 'long_look', { n: 1 }),
              call('a1c1', 'long_job', { n: 2 }),
              call('a1c2', 'long_job', { n: 3 }),
            ],
          }),
          answer({ text: 'answer 3' }),
        ],
      },
    ],
    commands: [
      command(10, 'start', start),
      command(11, 'remind', { body: 'be brief', ttl_turns: 2, dedupe_key: 'k' }),
      command(12, 'remind', { body: 'be very brief', ttl_turns: 2, dedupe_key: 'k' }),
      command(17, 'followup', { body: 'and then' }),
      command(18, 'replace', { command_id: 'followup-17', body: 'and after that' }),
      command(19, 'steer', { body: 'never mind' }),
      command(20, 'revoke', { command_id: 'steer-19' }),
      command(8_000, 'suspend', { signal: 'built', for_ms: 30 * 24 * 60 * 60 * 1_000 }),
      command(9_000, 'signal', { name: 'built', data: { ok: true } }),
    ],
  };
}

/** The number of a call that parks its session for some seconds and nothing else. */
function shortNap(): number {
  for (let n = 0; ; n++) {
    const { for_ms = 0, signal, on_timeout } = planSuspension(createRandom(n), 0);
    if (for_ms > 500 && for_ms < 5_000 && signal === undefined && on_timeout === 'resume_with_input') return n;
  }
}

/** The same session as {@link schedule}, and a fork of it that begins in the middle of its first batch, with another model. */
function forking(seed: number, nemesis: readonly NemesisAct[]): Schedule {
  const plain = schedule(seed, nemesis);
  const fork = { session: 's1', n: 6, changes: { model: 'sim/other' } };
  return {
    ...plain,
    sessions: [...plain.sessions, { id: 'f1', answers: [...(plain.sessions[0]?.answers ?? [])] }],
    commands: [...plain.commands, { ...command(9_000, 'start', { fork }), session: 'f1' }],
  };
}

/** Every await takes minutes: `npm test` strikes at a sample of them, and the nightly run at each. */
const STRIDE = process.env.COX_NIGHTLY === '1' ? 1 : 160;

async function strikeAll(make: typeof schedule, kind: Strike, seed: number): Promise<void> {
  // One seed for all, so that everything is the same up to the moment at which it strikes.
  const { awaits, problems } = await runSchedule(make(seed, []));
  expect(problems).toEqual([]);
  expect(awaits).toBeGreaterThan(100);
  for (let at = seed; at <= awaits; at += STRIDE) {
    const { problems, history } = await runSchedule(make(seed, [{ kind, atMs: 0, awaits: at, downMs: 700 }]));
    expect(problems, `${kind} ${at}`).toEqual([]);
    const struck = history
      .of('host')
      .filter(({ did }, index) => did === 'is killed' || (did === 'starts' && index > 0));
    expect(struck, `${kind} ${at} struck`).not.toEqual([]);
  }
}
type Strike = 'crash_at_await' | 'rival_at_await';

describe.each(['crash_at_await', 'rival_at_await'] as const)('%s', { timeout: 1_800_000 }, (kind) => {
  test('during a batch of calls', () => strikeAll(schedule, kind, 1));
  test('while a session sleeps', () => strikeAll(sleeping, kind, 3));
  test('while a session is forked', () => strikeAll(forking, kind, 2));
});

const SLEEPS = ['suspended', 'resumed', 'timer_fired', 'signal_received', 'call_accepted', 'budget_threshold'] as const;
const TAKES_BACK = ['injection_collapsed', 'reminder_expired', 'stop_predicates_answered'] as const;

test.each([1, 3, 5, 7])('a session that sleeps does all that it is there for, with seed %i', async (seed) => {
  const { evidence, problems } = await runSchedule(sleeping(seed, []));
  expect(problems).toEqual([]);
  const events = evidence.journals.flatMap(({ records }) => records.flatMap(({ events }) => events));
  const types = new Set(events.map(({ type }) => type));
  expect([...SLEEPS, ...TAKES_BACK].filter((type) => !types.has(type))).toEqual([]);
});

test('a session that is forked has a fork that goes its own way', async () => {
  const { evidence, problems } = await runSchedule(forking(1, []));
  expect(problems).toEqual([]);
  const fork = evidence.journals.find(({ session }) => session === 'f1');
  const types = new Set(fork?.records.flatMap(({ events }) => events.map(({ type }) => type)));
  const own = ['session_copied', 'settings_changed', 'reprovisioned', 'agent_end'] as const;
  expect(own.filter((type) => !types.has(type))).toEqual([]);
});
