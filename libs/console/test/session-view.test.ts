/** A session's view: built from its records, up to any of them. */
import type { SessionEvent } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { journal, journalNames } from '../../../tests/traces/golden-journals.ts';
import type { CallEntry, Entry } from '../src/view/entries.ts';
import { SessionViewBuilder, viewUpTo } from '../src/view/session-view.ts';

describe('the view up to a record is the view as it was then:', () => {
  test.each(journalNames)('%s', (name) => {
    const records = journal(name);
    const builder = new SessionViewBuilder();
    for (const record of records) {
      builder.record(record);
      expect(viewUpTo(records, record.n)).toEqual(builder.view);
    }
  });
});

test.each(journalNames)('what waits at the end of %s is what its last record says waits', (name) => {
  const records = journal(name);
  const ends = records.flatMap(({ events }) => events.filter((event) => event.type === 'agent_end'));
  const last = records.at(-1)?.events.at(-1);
  if (last?.type !== 'agent_end' || ends.at(-1) !== last) return;
  expect(viewUpTo(records, records.length).pending).toHaveLength(last.pending);
});

test.each([
  ['steering_received', 'steer'],
  ['reminder_injected', 'remind'],
  ['followup_received', 'followup'],
])('the timeline has every %s as the command %s', (type, title) => {
  const counts = journalNames.map((name) => {
    const records = journal(name);
    const shown = viewUpTo(records, records.length).moments.filter((moment) => moment.title === title);
    const rejected = records.flatMap(({ events }) => events.filter((event) => isRejected(event, title)));
    return [
      records.flatMap(({ events }) => events.filter((event) => event.type === type)).length,
      shown.length - rejected.length,
    ];
  });
  expect(counts.filter(([stored, shown]) => stored !== shown)).toEqual([]);
  expect(counts.some(([stored]) => stored !== 0)).toBe(true);
});

/** Whether the timeline shows the rejection of a command, under the same title. */
function isRejected(event: SessionEvent, title: string): boolean {
  return event.type === 'command_rejected' && event.verb === title;
}

test('a repeated record changes nothing', () => {
  const records = journal('approval-allowed-and-denied');
  const builder = new SessionViewBuilder();
  for (const record of records) {
    builder.record(record);
    builder.record(record);
  }
  expect(builder.view).toEqual(viewUpTo(records, records.length));
});

test('a call waits, is decided, runs and ends in one entry', () => {
  const records = journal('approval-allowed-and-denied');
  const asked = records.find(({ events }) => events.some(({ type }) => type === 'approval_requested'))?.n ?? 0;
  const before = viewUpTo(records, asked);
  expect(before.approvals.map(({ tool, args }) => ({ tool, args }))).toEqual([{ tool: 'haul', args: { ms: 100 } }]);
  expect(calls(before.entries)[0]).toMatchObject({ standing: 'waiting', tool: 'haul', result: null });
  const after = viewUpTo(records, records.length);
  expect(after.approvals).toEqual([]);
  expect(new Set(calls(after.entries).map(({ callId }) => callId)).size).toBe(calls(after.entries).length);
  expect(calls(after.entries)[0]).toMatchObject({ standing: 'ok', callId: 'c1_1' });
  expect(calls(after.entries)[0]?.decision).toMatch(/^allowed/);
  // The time next to its result is that of the record that ended it, and not of the one that asked for it.
  const ended = records.find(({ events }) => events.some((one) => one.type === 'call_ended' && one.call_id === 'c1_1'));
  expect(calls(after.entries)[0]?.endedAt).toBe(ended?.at);
  expect(ended?.at).not.toBe(calls(after.entries)[0]?.at);
  expect(calls(before.entries)[0]?.endedAt).toBeNull();
});

test('a steer waits until it is delivered, and then stands in the transcript', () => {
  const name = journalNames.find((one) =>
    journal(one).some(({ events }) =>
      events.some((event) => event.type === 'message_injected' && event.origin === 'steer'),
    ),
  );
  const records = journal(name ?? '');
  const received = records.find(({ events }) => events.some(({ type }) => type === 'steering_received'));
  const steer = received?.events.find((event) => event.type === 'steering_received');
  const delivered = records.find(({ events }) => events.some(({ type }) => type === 'message_injected'));
  if (!received || steer?.type !== 'steering_received' || !delivered) throw new Error('no journal with a steer');
  if (received.n < delivered.n)
    expect(viewUpTo(records, received.n).pending).toContainEqual(
      expect.objectContaining({ commandId: steer.command_id, kind: 'steer', text: steer.body }),
    );
  const after = viewUpTo(records, delivered.n);
  expect(after.pending.map(({ commandId }) => commandId)).not.toContain(steer.command_id);
  expect(after.entries).toContainEqual(expect.objectContaining({ kind: 'injection', commandId: steer.command_id }));
});

test('pieces of an answer are shown at once, and its record changes nothing about them', () => {
  const records = journal('plain-answer');
  const answered = records.find(({ events }) => events.some(({ type }) => type === 'message_complete'));
  const message = answered?.events.find((event) => event.type === 'message_complete');
  if (!answered || message?.type !== 'message_complete' || !('effect_id' in answered.input))
    throw new Error('no answer in it');
  const text = message.message.content.map((part) => (part.type === 'text' ? part.text : '')).join('');
  const builder = new SessionViewBuilder();
  for (const record of records.filter(({ n }) => n < answered.n)) builder.record(record);
  builder.delta({
    type: 'message_update',
    session_id: answered.session_id,
    effect_id: answered.input.effect_id,
    epoch: 1,
    attempt: 1,
    turn: message.turn,
    index: 0,
    kind: 'text',
    offset: 0,
    text: text.slice(0, 3),
  });
  expect(builder.view.entries.at(-1)).toMatchObject({ kind: 'answer', live: true, text: text.slice(0, 3) });
  builder.record(answered);
  expect(builder.view.entries.filter(({ kind }) => kind === 'answer')).toEqual([
    expect.objectContaining({ live: false, text }),
  ]);
});

test('each report of a running call stands on its own line', () => {
  const records = journal('approval-allowed-and-denied');
  const started = records.find(({ events }) => events.some(({ type }) => type === 'call_started'));
  const call = started?.events.find((event) => event.type === 'call_started');
  if (!started || call?.type !== 'call_started') throw new Error('no call in it');
  const builder = new SessionViewBuilder();
  for (const record of records.filter(({ n }) => n <= started.n)) builder.record(record);
  for (const [index, text] of ['step 1', 'step 2\n', 'step 3'].entries())
    builder.delta({
      type: 'message_update',
      session_id: started.session_id,
      effect_id: call.effect_id,
      epoch: 1,
      attempt: 1,
      turn: 1,
      index,
      kind: 'progress',
      offset: 0,
      text,
      call_id: call.call_id,
    });
  expect(calls(builder.view.entries).find(({ callId }) => callId === call.call_id)?.progress).toBe(
    'step 1\nstep 2\nstep 3',
  );
});

function calls(entries: readonly Entry[]): CallEntry[] {
  return entries.filter((entry): entry is CallEntry => entry.kind === 'call');
}
