/** Each checker, shown a sound simulation in whose evidence one thing was changed. */
import type { EventOf, EventType, JournalRecord, SessionEvent } from '@coxswain/protocol';
import { beforeAll, describe, expect, test } from 'vitest';
import { CHECKERS, type Checker, check, type Evidence, found, type Journal } from './checkers/check.ts';
import { simulate } from './simulate.ts';

let sound: Evidence[] = [];

beforeAll(async () => {
  sound = [];
  for (let seed = 1; seed <= 40; seed++) sound.push((await simulate(seed)).evidence);
}, 60_000);

type Change = (event: SessionEvent, record: JournalRecord) => readonly SessionEvent[];

/** The first journal that has an event of this type, which `holds` if given, with that one event changed. */
function changed<T extends EventType>(
  type: T,
  change: Change,
  holds: (event: Extract<SessionEvent, { type: T }>, record: JournalRecord) => boolean = () => true,
): { journal: Journal; evidence: Evidence } {
  for (const evidence of sound) {
    for (const journal of evidence.journals) {
      let done = false;
      const records = journal.records.map((record) => ({
        ...record,
        events: record.events.flatMap((event) => {
          if (done || event.type !== type || !holds(event as Extract<SessionEvent, { type: T }>, record))
            return [event];
          done = true;
          return change(event, record);
        }),
      }));
      if (done) return { journal: { ...journal, records }, evidence };
    }
  }
  throw new Error(`no sound journal has such a ${type}`);
}

/** The first journal of so many records, with one record changed. */
function record(
  index: number,
  change: (record: JournalRecord) => JournalRecord,
): { journal: Journal; evidence: Evidence } {
  for (const evidence of sound) {
    for (const journal of evidence.journals) {
      if (journal.records.length < 12) continue;
      const records = journal.records.map((one, place) => (place === index ? change(one) : one));
      return { journal: { ...journal, records }, evidence };
    }
  }
  throw new Error('no journal is long enough');
}

const twice: Change = (event) => [event, event];
const never: Change = () => [];

const CASES: readonly (readonly [checker: string, what: string, () => { journal: Journal; evidence: Evidence }])[] = [
  ['runs', 'a turn ends twice', () => changed('turn_end', twice)],
  ['runs', 'a turn has no end', () => changed('turn_end', never)],
  ['runs', 'a run ends twice', () => changed('agent_end', twice)],
  ['runs', 'a run has no end', () => changed('agent_end', never)],
  ['runs', 'a run begins twice', () => changed('agent_start', twice)],
  ['runs', 'an answer is complete twice', () => changed('message_complete', twice)],
  ['runs', 'an answer is missing', () => changed('message_complete', never, ({ message }) => !message.partial)],
  [
    'runs',
    'turns are not counted on',
    () => changed('turn_start', (event) => [{ ...event, turn: 99 } as SessionEvent]),
  ],
  ['runs', 'a prompt comes in the middle of a run', () => changed('turn_start', (event) => [prompt, event])],
  [
    'runs',
    'an exception of ours was got over',
    () => record(5, (one) => ({ ...one, input: { type: 'session_failed', n: 5, error: { code: 'x', message: 'y' } } })),
  ],
  ['budgets', 'a threshold is told twice', () => changed('budget_threshold', twice)],
  [
    'budgets',
    'a threshold is told too early',
    () =>
      changed(
        'budget_threshold',
        (event) => [{ ...event, used: 0 } as SessionEvent],
        ({ needed }) => !needed,
      ),
  ],
  [
    'budgets',
    'a turn begins after a budget was used up',
    () =>
      changed(
        'budget_threshold',
        (event) => [event, { type: 'turn_start', turn: 99 }],
        ({ percent }) => percent === 100,
      ),
  ],
  ['calls', 'a call has two results', () => changed('call_ended', twice)],
  ['calls', 'a call has no result', () => changed('call_ended', never)],
  ['calls', 'a call starts twice', () => changed('call_started', twice)],
  ['calls', 'a call ran that was never started', () => changed('call_started', never, (_e, { n }) => n > 0)],
  [
    'calls',
    'a call that ran is said to be skipped',
    () =>
      changed(
        'call_ended',
        (event) => [{ ...event, status: 'skipped' } as SessionEvent],
        ({ status }) => status === 'ok',
      ),
  ],
  [
    'calls',
    'a call that was denied ran',
    () =>
      changed(
        'approval_decided',
        (event) => [{ ...event, decision: 'deny' } as SessionEvent],
        ({ decision }, { events }) => decision === 'allow' && events.some(({ type }) => type === 'call_started'),
      ),
  ],
  [
    'commands',
    'a message is delivered twice',
    () => changed('message_injected', twice, ({ origin }) => origin === 'steer'),
  ],
  [
    'commands',
    'a message is delivered and never sent',
    () =>
      changed(
        'message_injected',
        (event) => [{ ...event, command_id: 'nobody' } as SessionEvent],
        ({ origin }) => origin === 'steer',
      ),
  ],
  [
    'commands',
    'a decision is taken twice',
    () => changed('approval_decided', twice, ({ decision }) => decision === 'allow'),
  ],
  [
    'commands',
    'an accepted cancellation leaves nothing behind',
    () =>
      changed('control_outcome', never, ({ control }, { input }) => control === 'cancel' && input.type === 'command'),
  ],
  ['commands', 'a prompt was taken twice', () => changed('prompt_received', twice)],
  [
    'effects',
    'a result comes from nowhere',
    () =>
      changed(
        'call_ended',
        (event) => [
          { ...event, result: { content: [{ type: 'text', text: 'made up' }], is_error: false } } as SessionEvent,
        ],
        ({ status }) => status === 'ok',
      ),
  ],
  [
    'effects',
    'a call is interrupted although its host never changed',
    () =>
      changed(
        'call_ended',
        (event) => [{ ...event, status: 'interrupted' } as SessionEvent],
        ({ status }, { epoch }) => status === 'ok' && epoch === 1,
      ),
  ],
  ['effects', 'a tool ran for no record', () => changed('call_started', never)],
  [
    'effects',
    'a tool ran with other arguments than were admitted',
    () => changed('call_started', (event) => [{ ...event, args: { n: -1 } } as SessionEvent]),
  ],
  [
    'feedback',
    'a notice is said twice',
    () => changed('message_injected', twice, ({ origin }) => origin === 'feedback'),
  ],
  [
    'feedback',
    'a notice is taken and not said',
    () => changed('message_injected', never, ({ origin }) => origin === 'feedback'),
  ],
  [
    'feedback',
    'a notice is said at a seam that is not for it',
    () =>
      changed(
        'message_injected',
        (event) => [{ ...event, seam: 'iteration_end' } as SessionEvent],
        ({ origin }) => origin === 'feedback',
      ),
  ],
  [
    'commands',
    'a message that was blocked is delivered all the same',
    () =>
      changed(
        'message_injected',
        (event) => [
          { type: 'injection_blocked', command_id: (event as EventOf<'message_injected'>).command_id, reason: 'no' },
          event,
        ],
        ({ origin }) => origin === 'steer',
      ),
  ],
  ['shown', 'a result is missing in the middle', () => changed('call_ended', never)],
  ['chain', 'a record has another number', () => record(4, (one) => ({ ...one, n: 99 }))],
  ['chain', 'a record is of another session', () => record(4, (one) => ({ ...one, session_id: 'other' }))],
  ['chain', 'a record does not chain', () => record(4, (one) => ({ ...one, prev_hash: 'f'.repeat(64) }))],
  ['chain', 'an epoch rises without owned', () => record(4, (one) => ({ ...one, epoch: 77 }))],
  ['chain', 'an epoch falls', () => record(4, (one) => ({ ...one, epoch: 0 }))],
  ['chain', 'another host writes without owning', () => record(4, (one) => ({ ...one, attempt: 'stranger' }))],
  [
    'chain',
    'a position goes backwards',
    () => record(9, (one) => ({ ...one, cursor: { stream: 's', created: '1', seq: 0 } })),
  ],
  ['chain', 'a record is empty', () => record(4, (one) => ({ ...one, events: [] }))],
];

const prompt: SessionEvent = {
  type: 'prompt_received',
  command_id: 'p',
  run: 2,
  messages: [{ role: 'user', content: [{ type: 'text', text: 'x' }] }],
};

describe('the evidence is sound', () => {
  test('until one thing is changed', async () => {
    for (const evidence of sound) expect(await check(evidence)).toEqual([]);
  });

  test.each(CASES.map(([checker, what, make]) => [checker, what, make] as const))(
    '%s: %s',
    async (checker, _what, make) => {
      const { journal, evidence } = make();
      expect(await found(CHECKERS[checker] as Checker, journal, evidence)).not.toEqual([]);
    },
  );
});

test('replay: bytes that were changed', async () => {
  const evidence = sound.find(({ journals }) => journals.some(({ bytes }) => bytes.length > 5)) as Evidence;
  const journal = evidence.journals.find(({ bytes }) => bytes.length > 5) as Journal;
  const bytes = journal.bytes.map((one, index) =>
    index === 3 ? Buffer.from(Buffer.from(one).toString().replace('"v":1', '"v":1 ')) : one,
  );
  expect(await CHECKERS.replay?.({ ...journal, bytes }, evidence)).toHaveLength(1);
});

test('receipts: one that tells more than the journal has', async () => {
  const evidence = sound.find(({ history }) =>
    history.of('receipt').some(({ receipt }) => receipt.n !== undefined),
  ) as Evidence;
  const told = evidence.history.of('receipt').find(({ receipt }) => receipt.n !== undefined);
  const journal = evidence.journals.find(({ session }) => session === told?.receipt.session_id) as Journal;
  const records = journal.records.map((one) => ({ ...one, events: [prompt] }));
  const wrong = (await CHECKERS.receipts?.({ ...journal, records: records.slice(0, 0) }, evidence)) ?? [];
  expect([...wrong, ...((await CHECKERS.receipts?.({ ...journal, records }, evidence)) ?? [])]).not.toEqual([]);
});

test('liveness: a session that has no end', async () => {
  const problems = await check({ ...(sound[0] as Evidence), ended: false });
  expect(problems.map(({ checker }) => checker)).toEqual(['liveness']);
});
