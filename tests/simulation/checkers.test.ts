/** Each checker, shown a sound simulation in whose evidence one thing was changed. */
import type { EventOf, SessionEvent } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { type Case, never, SoundEvidence, twice } from './changed-evidence.ts';
import { CHANGED_LIVES } from './changed-lives.ts';
import { CHECKERS, type Checker, check, found } from './checkers/check.ts';

const range = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, i) => first + i);
/** They have what is rare: a reminder that makes way for another, a budget threshold in a record without a checkpoint. */
const RARE_SEEDS = [148, 21];
/** The first of them have all that the cases change. Where that changes, those after them do. */
const sound = new SoundEvidence([...range(1, 11), ...RARE_SEEDS, ...range(12, 20), ...range(22, 100)]);

const CASES: readonly Case[] = [
  ['runs', 'a turn ends twice', (sound) => sound.changed('turn_end', twice)],
  ['runs', 'a turn has no end', (sound) => sound.changed('turn_end', never)],
  ['runs', 'a run ends twice', (sound) => sound.changed('agent_end', twice)],
  ['runs', 'a run has no end', (sound) => sound.changed('agent_end', never)],
  ['runs', 'a run begins twice', (sound) => sound.changed('agent_start', twice)],
  ['runs', 'an answer is complete twice', (sound) => sound.changed('message_complete', twice)],
  [
    'runs',
    'an answer is missing',
    (sound) => sound.changed('message_complete', never, ({ message }) => !message.partial),
  ],
  [
    'runs',
    'turns are not counted on',
    (sound) => sound.changed('turn_start', (event) => [{ ...event, turn: 99 } as SessionEvent]),
  ],
  ['runs', 'a prompt comes in the middle of a run', (sound) => sound.changed('turn_start', (event) => [prompt, event])],
  [
    'runs',
    'an exception of ours was got over',
    (sound) =>
      sound.record(5, (one) => ({
        ...one,
        input: { type: 'session_failed', n: 5, error: { code: 'x', message: 'y' } },
      })),
  ],
  ['calls', 'a call has two results', (sound) => sound.changed('call_ended', twice)],
  ['calls', 'a call has no result', (sound) => sound.changed('call_ended', never)],
  ['calls', 'a call starts twice', (sound) => sound.changed('call_started', twice)],
  [
    'calls',
    'a call ran that was never started',
    (sound) =>
      sound.changed('call_started', never, ({ call_id }, _record, { records }) =>
        records.some(({ events }) =>
          events.some((event) => event.type === 'call_ended' && event.call_id === call_id && event.status === 'ok'),
        ),
      ),
  ],
  [
    'calls',
    'a call that ran is said to be skipped',
    (sound) =>
      sound.changed(
        'call_ended',
        (event) => [{ ...event, status: 'skipped' } as SessionEvent],
        ({ status }) => status === 'ok',
      ),
  ],
  [
    'calls',
    'a call that was denied ran',
    (sound) =>
      sound.changed(
        'approval_decided',
        (event) => [{ ...event, decision: 'deny' } as SessionEvent],
        ({ decision }, { events }) => decision === 'allow' && events.some(({ type }) => type === 'call_started'),
      ),
  ],
  [
    'commands',
    'a message is delivered twice',
    (sound) => sound.changed('message_injected', twice, ({ origin }) => origin === 'steer'),
  ],
  [
    'commands',
    'a message is delivered and never sent',
    (sound) =>
      sound.changed(
        'message_injected',
        (event) => [{ ...event, command_id: 'nobody' } as SessionEvent],
        ({ origin }) => origin === 'steer',
      ),
  ],
  [
    'commands',
    'a decision is taken twice',
    (sound) => sound.changed('approval_decided', twice, ({ decision }) => decision === 'allow'),
  ],
  [
    'commands',
    'an accepted cancellation leaves nothing behind',
    (sound) =>
      sound.changed('control_outcome', never, ({ control, status }) => control === 'cancel' && status === 'cancelled'),
  ],
  ['commands', 'a prompt was taken twice', (sound) => sound.changed('prompt_received', twice)],
  [
    'effects',
    'a result comes from nowhere',
    (sound) =>
      sound.changed(
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
    (sound) =>
      sound.changed(
        'call_ended',
        (event) => [{ ...event, status: 'interrupted' } as SessionEvent],
        ({ status }, { epoch }) => status === 'ok' && epoch === 1,
      ),
  ],
  ['effects', 'a tool ran for no record', (sound) => sound.changed('call_started', never)],
  [
    'effects',
    'a tool ran with other arguments than were admitted',
    (sound) => sound.changed('call_started', (event) => [{ ...event, args: { n: -1 } } as SessionEvent]),
  ],
  [
    'feedback',
    'a notice is said twice',
    (sound) => sound.changed('message_injected', twice, ({ origin }) => origin === 'feedback'),
  ],
  [
    'feedback',
    'a notice is taken and not said',
    (sound) => sound.changed('message_injected', never, ({ origin }) => origin === 'feedback'),
  ],
  [
    'feedback',
    'a notice is said at a seam that is not for it',
    (sound) =>
      sound.changed(
        'message_injected',
        (event) => [{ ...event, seam: 'iteration_end' } as SessionEvent],
        ({ origin }) => origin === 'feedback',
      ),
  ],
  [
    'fates',
    'a message that was blocked is delivered all the same',
    (sound) =>
      sound.changed(
        'message_injected',
        (event) => [
          { type: 'injection_blocked', command_id: (event as EventOf<'message_injected'>).command_id, reason: 'no' },
          event,
        ],
        ({ origin }) => origin === 'steer',
      ),
  ],
  ['shown', 'a result is missing in the middle', (sound) => sound.changed('call_ended', never)],
  ['chain', 'a record has another number', (sound) => sound.record(4, (one) => ({ ...one, n: 99 }))],
  ['chain', 'a record is of another session', (sound) => sound.record(4, (one) => ({ ...one, session_id: 'other' }))],
  ['chain', 'a record does not chain', (sound) => sound.record(4, (one) => ({ ...one, prev_hash: 'f'.repeat(64) }))],
  ['chain', 'an epoch rises without owned', (sound) => sound.record(4, (one) => ({ ...one, epoch: 77 }))],
  ['chain', 'an epoch falls', (sound) => sound.record(4, (one) => ({ ...one, epoch: 0 }))],
  [
    'chain',
    'another host writes without owning',
    (sound) => sound.record(4, (one) => ({ ...one, attempt: 'stranger' })),
  ],
  [
    'chain',
    'a position goes backwards',
    (sound) => sound.record(9, (one) => ({ ...one, cursor: { stream: 's', created: '1', seq: 0 } })),
  ],
  ['chain', 'a record is empty', (sound) => sound.record(4, (one) => ({ ...one, events: [] }))],
];

const prompt: SessionEvent = {
  type: 'prompt_received',
  command_id: 'p',
  run: 2,
  messages: [{ role: 'user', content: [{ type: 'text', text: 'x' }] }],
};

test.each([...CASES, ...CHANGED_LIVES].map(([checker, what, make]) => [checker, what, make] as const))(
  '%s: %s',
  async (checker, _what, make) => {
    const { journal, evidence } = await sound.made(make);
    expect(await found(CHECKERS[checker] as Checker, journal, evidence)).not.toEqual([]);
  },
);

test('replay: bytes that were changed', async () => {
  const { journal, evidence } = await sound.made((all) => all.unchanged(({ bytes }) => bytes.length > 5));
  const bytes = journal.bytes.map((one, index) =>
    index === 3 ? Buffer.from(Buffer.from(one).toString().replace('"v":1', '"v":1 ')) : one,
  );
  expect(await CHECKERS.replay?.({ ...journal, bytes }, evidence)).toHaveLength(1);
});

test('receipts: one that tells more than the journal has', async () => {
  const { journal, evidence } = await sound.made((all) =>
    all.unchanged(({ session }, { history }) =>
      history.of('receipt').some(({ receipt }) => receipt.n !== undefined && receipt.session_id === session),
    ),
  );
  const records = journal.records.map((one) => ({ ...one, events: [prompt] }));
  const wrong = (await CHECKERS.receipts?.({ ...journal, records: records.slice(0, 0) }, evidence)) ?? [];
  expect([...wrong, ...((await CHECKERS.receipts?.({ ...journal, records }, evidence)) ?? [])]).not.toEqual([]);
});

test('liveness: a session that has no end', async () => {
  const { evidence } = await sound.made((all) => all.unchanged(() => true));
  const problems = await check({ ...evidence, ended: false });
  expect(problems.map(({ checker }) => checker)).toEqual(['liveness']);
});
