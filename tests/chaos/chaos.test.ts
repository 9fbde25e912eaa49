/**
 * A run in small, so that the harness stays in order: two hosts, one of them killed, a few sessions for a few seconds. Then
 * each checker is shown the same evidence with one thing changed in it that must not be. Nothing is timed here.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDelivery, type SessionEvent } from '@coxswain/protocol';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CHECKERS, check } from './checkers/check.ts';
import { UsageError, wantedBy } from './command-line.ts';
import { type ChaosEvidence, readEvidence, type StoredJournal } from './evidence.ts';
import { planLoad, USUAL_LOAD } from './generator.ts';
import { History, type HistoryEntry } from './history.ts';
import { measure } from './measures.ts';
import { type Outcome, runScenario } from './run-scenario.ts';
import type { Scenario } from './scenario.ts';
import { SCENARIOS } from './scenarios.ts';
import { gapsOf } from './stalls.ts';

const miniature: Scenario = {
  name: 'miniature',
  about: 'one kill among a few sessions',
  defaults: { hosts: 2, workers: 1, sessions: 6, minutes: 0.1, replicas: 1, seed: 4 },
  load: {
    modelMs: [50, 150],
    toolMs: [50, 200],
    callTurns: [2, 3],
    thinkMs: [50, 100],
    answerMs: [50, 100],
    actionEveryMs: 600,
    rampMs: 300,
  },
  faults: () => [{ atMs: 3_000, fault: 'kill_host', on: 'a', forMs: 500 }],
  bars: () => [],
};

const RUNS_MAX = 3;
const folders: string[] = [];
let outcome: Outcome;
let sound: ChaosEvidence;

beforeAll(async () => {
  // On a busy machine, the killed host can have had no session at work. Then the run has nothing to check.
  for (let runs = 1; runs <= RUNS_MAX && !outcome?.measures.takeOvers; runs++) {
    const folder = await mkdtemp(join(tmpdir(), 'cox-chaos-test-'));
    folders.push(folder);
    outcome = await runScenario(miniature, miniature.defaults, folder);
    sound = readEvidence(folder);
  }
}, 300_000);
afterAll(async () => {
  for (const folder of folders) await rm(folder, { recursive: true, force: true, maxRetries: 5 });
});

test('a run in small holds all that is checked', () => {
  const problems = outcome.verdicts.flatMap((one) =>
    one.problems.map(({ session, what }) => `${one.checker}: ${session} ${what}`),
  );
  expect(problems).toEqual([]);
  expect(outcome.measures).toMatchObject({ kills: 1, runs: expect.any(Number) });
  expect(outcome.measures.takeOvers?.count).toBeGreaterThan(0);
  expect(outcome.measures.runs).toBeGreaterThan(miniature.defaults.sessions);
});

// ---- what must not be ----

type Change = (evidence: ChaosEvidence) => ChaosEvidence;

const withHistory = (evidence: ChaosEvidence, change: (entries: HistoryEntry[]) => HistoryEntry[]): ChaosEvidence => ({
  ...evidence,
  history: new History(change([...evidence.history.entries])),
});

/** Changes the first journal that `change` takes; it returns null for one that it has no use for. */
function withJournal(evidence: ChaosEvidence, change: (journal: StoredJournal) => StoredJournal | null): ChaosEvidence {
  let done = false;
  const journals = evidence.journals.map((journal) => {
    const changed = done ? null : change(journal);
    done ||= changed !== null;
    return changed ?? journal;
  });
  if (!done) throw new Error('no journal of this run can be changed like that');
  return { ...evidence, journals };
}

/** Puts another list of events in the place of the first event of a type that fits. */
function withEvent<T extends SessionEvent['type']>(
  type: T,
  put: (event: Extract<SessionEvent, { type: T }>) => readonly SessionEvent[],
  fits: (event: SessionEvent) => boolean = () => true,
): Change {
  return (evidence) =>
    withJournal(evidence, (journal) => {
      const at = journal.records.findIndex(({ events }) => events.some((event) => event.type === type && fits(event)));
      const record = journal.records[at];
      if (!record) return null;
      const i = record.events.findIndex((event) => event.type === type && fits(event));
      const event = record.events[i] as Extract<SessionEvent, { type: T }>;
      const events = [...record.events.slice(0, i), ...put(event), ...record.events.slice(i + 1)];
      const records = [...journal.records];
      records[at] = { ...record, events };
      return { ...journal, records };
    });
}

const twice = <E>(event: E): E[] => [event, event];
const never = () => [];
const entries = (...more: HistoryEntry[]): Change => {
  return (evidence) => withHistory(evidence, (all) => [...all, ...more]);
};
const session = () => sound.journals[0]?.session as string;

/** The host that was killed, and a session that another one took over from it. */
function lossIn({ history, hostLog, journals }: ChaosEvidence) {
  const pid = history.of('process').find(({ role, did }) => role === 'host' && did === 'killed')?.pid as number;
  const host = hostLog.find((line) => line.what === 'up' && line.pid === pid)?.host as string;
  const isIts = (attempt: string | undefined) => attempt?.split('.')[0] === host;
  for (const { session, records, storedAtMs } of journals) {
    const at = records.findIndex(({ attempt }, i) => !isIts(attempt) && isIts(records[i - 1]?.attempt));
    const [effect] = records[at - 1]?.effects_open ?? [];
    if (at > 0 && effect !== undefined) return { pid, session, effect, atMs: storedAtMs[at] as number };
  }
  throw new Error('nothing was taken over');
}

const PLANTED: readonly (readonly [checker: string, what: string, change: Change])[] = [
  [
    'nothing acknowledged is missing',
    'a command was acknowledged and is nowhere',
    (evidence) =>
      entries(
        {
          what: 'invoked',
          op: 9_001,
          session: session(),
          verb: 'steer',
          commandId: 'lost',
          over: 'bare',
          again: false,
          atMs: 1,
        },
        { what: 'stored', op: 9_001, seq: 9_001, duplicate: false, atMs: 2 },
      )(evidence),
  ],
  [
    'nothing acknowledged is missing',
    'a receipt speaks of a record that is not there',
    (evidence) =>
      withHistory(evidence, (all) =>
        all.map((entry) => (entry.what === 'receipt' ? { ...entry, receipt: { ...entry.receipt, n: 90_000 } } : entry)),
      ),
  ],
  [
    'publishers are told',
    'nobody says what became of a command',
    (evidence) => {
      const first = evidence.history.of('stored')[0]?.op;
      return withHistory(evidence, (all) => all.filter((one) => !(one.what === 'stored' && one.op === first)));
    },
  ],
  [
    'publishers are told',
    'whoever publishes waits for two minutes',
    (evidence) =>
      withHistory(evidence, (all) =>
        all.map((one) => (one.what === 'stored' ? { ...one, atMs: one.atMs + 120_000 } : one)),
      ),
  ],
  [
    'commands once and in order',
    'a command takes effect again',
    (evidence) =>
      withJournal(evidence, (journal) => {
        const record = journal.records.findLast(({ input }) => input.type === 'command' && input.verb === 'steer');
        if (!record) return null;
        return { ...journal, records: [...journal.records, { ...record, n: journal.records.length + 1 }] };
      }),
  ],
  [
    'commands once and in order',
    'two commands are handled in the wrong order',
    (evidence) =>
      withHistory(evidence, (all) => {
        const stored = new Map(
          all.flatMap((one) => (one.what === 'stored' && one.seq !== null ? [[one.op, one.seq]] : [])),
        );
        const ops = all.flatMap((one) => (one.what === 'invoked' && one.session === session() ? [one.op] : []));
        const last = ops.findLast((op) => stored.has(op));
        return all.map((one) => (one.what === 'stored' && one.op === last ? { ...one, seq: 1 } : one));
      }),
  ],
  ['injections come to one end', 'a message is delivered twice', withEvent('message_injected', twice, isDelivery)],
  [
    'receipts are true',
    'a receipt comes before its record is stored',
    (evidence) =>
      withHistory(evidence, (all) =>
        all.map((entry) => (entry.what === 'receipt' ? { ...entry, atMs: entry.atMs - 60_000 } : entry)),
      ),
  ],
  [
    'one writer, chained records',
    'somebody else writes in between',
    (evidence) =>
      withJournal(evidence, (journal) => ({
        ...journal,
        records: journal.records.map((record) => (record.n === 3 ? { ...record, attempt: 'other-1' } : record)),
      })),
  ],
  ['one result per call', 'a call has two results', withEvent('call_ended', twice)],
  ['one result per call', 'a call has no result', withEvent('call_ended', never)],
  ['each run ends once', 'a run ends twice', withEvent('agent_end', twice)],
  ['each run ends once', 'a run has no end', withEvent('agent_end', never)],
  [
    'effects once',
    'a call that must not runs again while its worker lives',
    (evidence) => {
      const first = evidence.effects.find(({ what, tool }) => what === 'start' && tool === 'book_berth');
      if (!first) throw new Error('no berth was booked');
      return { ...evidence, effects: [...evidence.effects, { ...first, atMs: first.atMs + 1 }] };
    },
  ],
  [
    'effects once',
    'a call runs before its record is stored',
    (evidence) => ({ ...evidence, effects: evidence.effects.map((one) => ({ ...one, atMs: one.atMs - 60_000 })) }),
  ],
  [
    'effects once',
    'a result stands there that no run has given',
    (evidence) => ({ ...evidence, effects: evidence.effects.filter(({ what }) => what === 'start') }),
  ],
  [
    'old owners do nothing',
    'a call is begun for an owner that was replaced',
    (evidence) => ({
      ...evidence,
      effects: evidence.effects.map((one) => ({ ...one, epoch: 0, atMs: one.atMs + 60_000 })),
    }),
  ],
  [
    'old owners do nothing',
    'a record of an older epoch follows',
    (evidence) =>
      withJournal(evidence, (journal) => {
        if (!journal.records.some(({ epoch }) => epoch > 1)) return null;
        const last = journal.records.length;
        const records = journal.records.map((record) => (record.n === last ? { ...record, epoch: 1 } : record));
        return { ...journal, records };
      }),
  ],
  [
    'lost sessions are let go',
    'a host that stood still begins something when another has the session',
    (evidence) => {
      const { pid, session, atMs } = lossIn(evidence);
      const began = { what: 'began', atMs: atMs + 2_000, pid, session, effect: '99-0' } as const;
      return entries({ what: 'process', role: 'host', name: 'a', pid, did: 'resumed', atMs: atMs + 1_000 })({
        ...evidence,
        hostLog: [...evidence.hostLog, began],
      });
    },
  ],
  [
    'lost sessions are let go',
    'a host that lives says nothing of what it had under way',
    (evidence) => {
      const { pid, session, effect, atMs } = lossIn(evidence);
      const isItsEnd = (one: HistoryEntry) => one.what === 'process' && one.pid === pid && one.did !== 'started';
      // The kill may have come before the host had started the effect.
      const began = { what: 'began', atMs: atMs - 1, pid, session, effect } as const;
      const alive = withHistory(evidence, (all) => all.filter((one) => !isItsEnd(one)));
      return { ...alive, hostLog: [...evidence.hostLog, began] };
    },
  ],
  [
    'journals replay byte for byte',
    'a byte is another one',
    (evidence) =>
      withJournal(evidence, (journal) => {
        const bytes = [...journal.bytes];
        const text = new TextDecoder().decode(bytes[2]);
        bytes[2] = new TextEncoder().encode(text.replace('"epoch":1', '"epoch":7'));
        return { ...journal, bytes };
      }),
  ],
  [
    'everything came to its end',
    'a session went on for ever',
    (evidence) => withHistory(evidence, (all) => all.filter((one) => one.what !== 'phase' || one.phase !== 'settled')),
  ],
  [
    'everything came to its end',
    'a fault could not be carried out',
    entries({ what: 'fault', fault: 'kill_host', phase: 'failed', on: 'a', detail: 'it was gone', atMs: 1 }),
  ],
];

describe('a checker finds', () => {
  test.each(PLANTED)('%s: %s', async (checker, _, change) => {
    const changed = change(sound);
    const [verdict] = await check(changed, { [checker]: CHECKERS[checker] as (typeof CHECKERS)[string] });
    expect(verdict?.problems.length).toBeGreaterThan(0);
    expect(verdict?.problems[0]?.what).not.toMatch(/cannot be (checked|read)/);
  });

  test('something planted for every one of them', () => {
    expect(new Set(PLANTED.map(([checker]) => checker))).toEqual(new Set(Object.keys(CHECKERS)));
  });
});

test('a stall is the time for which a session could have gone on, and did not', () => {
  const LATE_MS = 60_000;
  const worst = (evidence: ChaosEvidence) => Math.max(...gapsOf(evidence).map(({ stallMs }) => stallMs));
  const late = withJournal(sound, (journal) => {
    const at = journal.records.findIndex(({ input }) => input.type === 'model_outcome');
    if (at < 0) return null;
    return { ...journal, storedAtMs: journal.storedAtMs.map((ms, i) => (i >= at ? ms + LATE_MS : ms)) };
  });
  expect(worst(late)).toBeGreaterThan(LATE_MS - 1_000);
  expect(measure(late).stalls?.worst).toBeGreaterThan(LATE_MS - 1_000);
});

test('the same seed plans the same, and another one something else', () => {
  const plan = (seed: number) => JSON.stringify(planLoad(seed, 5, 60_000, USUAL_LOAD));
  expect(plan(7)).toBe(plan(7));
  expect(plan(7)).not.toBe(plan(8));
});

describe('the command line', () => {
  test.each([
    [[], /--scenario is missing; there are: hosts-killed/],
    [['--scenario', 'no-such'], /no scenario is named no-such; there are: hosts-killed/],
    [['--scenario', 'soak', '--hosts', '0'], /--hosts takes a number from 1 to 9, not "0"/],
    [['--scenario', 'soak', '--sessions', '1.5'], /--sessions takes a whole number, not "1.5"/],
    [['--scenario', 'soak', '--minutes', ''], /--minutes takes a number/],
    [['--scenario', 'soak', '--replicas', '2'], /--replicas takes 1 or 3, not "2"/],
    [['--scenario', 'soak', '--seeed', '2'], /seeed/],
    [['--check', '/nowhere'], /no run has left its files there/],
  ] as const)('%j is refused', (argv, why) => {
    expect(() => wantedBy(argv, SCENARIOS)).toThrow(UsageError);
    expect(() => wantedBy(argv, SCENARIOS)).toThrow(why);
  });

  test('what is not said is as the scenario has it', () => {
    const wanted = wantedBy(['--scenario', 'soak', '--minutes', '2', '--seed', '9'], SCENARIOS);
    expect(wanted).toMatchObject({ want: 'run', options: { minutes: 2, seed: 9, hosts: 2, sessions: 100 } });
  });
});
