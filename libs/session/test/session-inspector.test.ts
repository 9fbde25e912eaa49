/**
 * A session's machine for inspectors: the fold of the journal, message by message.
 */
import type { JournalRecord, Json, StateValue } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { journal, journalNames } from '../../../tests/traces/golden-journals.ts';
import {
  INSPECT_VERSION,
  type InspectionMessage,
  type InspectorOptions,
  machineDefinition,
  SessionInspector,
  type SnapshotMessage,
} from '../src/mod.ts';

function told(records: readonly JournalRecord[], options?: InspectorOptions): InspectionMessage[] {
  const inspector = new SessionInspector(records[0]?.session_id ?? '', options);
  return records.flatMap((record) => [...inspector.take(record)]);
}

const isSnapshot = (message: InspectionMessage): message is SnapshotMessage => message.type === '@xstate.snapshot';

describe.each(journalNames)('%s', (name) => {
  const records = journal(name);
  const messages = told(records);

  test('after each record, the machine is in the recorded state', () => {
    const states = new Map<number, StateValue>();
    for (const message of messages.filter(isSnapshot)) states.set(message.coxswain.n, message.snapshot.value);
    expect([...states]).toEqual(records.map(({ n, state }) => [n, state]));
  });

  test('an actor comes first, then each event of the journal once, with the snapshot after it', () => {
    expect(messages[0]).toMatchObject({ type: '@xstate.actor', snapshot: { value: 'stopped' }, coxswain: { n: 0 } });
    const events = records.flatMap(({ events }) => events.map(({ type }) => type));
    expect(messages.slice(1).map((message) => [message.type, 'event' in message && message.event.type])).toEqual(
      events.flatMap((type) => [
        ['@xstate.event', type],
        ['@xstate.snapshot', type],
      ]),
    );
    const ends = messages.filter(isSnapshot).filter(({ coxswain }) => coxswain.last);
    expect(ends.map(({ coxswain }) => coxswain.n)).toEqual(records.map(({ n }) => n));
  });

  test('each message has its own id, and is the same for every reader', () => {
    expect(new Set(messages.map(({ id }) => id)).size).toBe(messages.length);
    expect(JSON.stringify(told(records))).toBe(JSON.stringify(messages));
  });

  test('the entered states lead from each snapshot to the next', () => {
    for (const { snapshot, coxswain } of messages.filter(isSnapshot)) {
      const [leaf] =
        typeof snapshot.value === 'string'
          ? [snapshot.value]
          : Object.entries(snapshot.value).map((at) => at.join('.'));
      if (coxswain.entered.length > 0) expect(coxswain.entered.at(-1)).toBe(leaf);
    }
  });

  test('an inspector that continues from another’s fold gives the same messages', () => {
    const at = Math.ceil(records.length / 2);
    const first = new SessionInspector(records[0]?.session_id ?? '');
    for (const record of records.slice(0, at)) for (const _ of first.take(record));
    const from = at + 2;
    const second = new SessionInspector(first.fold.sessionId, { from, after: first.fold });
    const continued = records.slice(at).flatMap((record) => [...second.take(record)]);
    const alone = told(records, { from });
    expect(JSON.stringify(continued)).toBe(JSON.stringify(alone));
    const before = messages.filter(isSnapshot).findLast(({ coxswain }) => coxswain.n < from);
    expect(alone[0]).toMatchObject({ type: '@xstate.actor', coxswain: { n: Math.min(from - 1, records.length) } });
    if (before) expect((alone[0] as { snapshot: unknown }).snapshot).toEqual(before.snapshot);
    expect(alone.slice(1)).toEqual(messages.slice(1).filter(({ coxswain }) => coxswain.n >= from));
  });
});

test('a reader that starts after the last record gets the machine’s present state', () => {
  const records = journal('follow-up');
  const messages = told(records, { from: records.length + 1 });
  expect(messages).toHaveLength(1);
  expect(messages[0]).toMatchObject({
    type: '@xstate.actor',
    snapshot: { value: records.at(-1)?.state },
    coxswain: { n: records.length },
  });
});

test('every message names its session, its time and its release', () => {
  const records = journal('follow-up');
  const sessionId = records[0]?.session_id;
  const times = new Set(records.map(({ at }) => String(Date.parse(at))));
  for (const message of told(records)) {
    expect(message).toMatchObject({ sessionId, rootId: sessionId, _version: INSPECT_VERSION });
    expect(times).toContain(message.createdAt);
  }
});

test('the definition has every state and every event of the machine, and no function', () => {
  const definition = JSON.parse(machineDefinition()) as { id: string; states: Record<string, object>; on: object };
  expect(definition.id).toBe('session');
  expect(Object.keys(definition.states)).toEqual(
    expect.arrayContaining(['provisioning', 'assistant_streaming', 'function_execute', 'suspended', 'failed']),
  );
  expect(Object.keys(definition.on)).toContain('steering_received');
  expect(definition).not.toHaveProperty('context');
});

describe('the output', () => {
  const SECRET = 'sk-abcdefghijklmnopqrstuvwx';
  /** A journal whose calls have these arguments. */
  const withArgs = (args: Json) =>
    JSON.parse(
      JSON.stringify(journal('cancel-call'), (key, value: unknown) => (key === 'args' ? args : value)),
    ) as JournalRecord[];

  test('has no secrets, in events and in contexts, and has counts of tokens', () => {
    const records = withArgs({
      api_key: 'hunter2-hunter2',
      note: `use ${SECRET}`,
      url: 'https://me:swordfish@example.com',
    });
    expect(JSON.stringify(records)).toContain('hunter2');
    const text = JSON.stringify(told(records));
    expect(text).not.toMatch(/hunter2|abcdefghijklmnop|swordfish/);
    expect(text).toContain('[redacted]');
    const [last] = told(records).filter(isSnapshot).slice(-1);
    expect(last?.snapshot.context).toMatchObject({ total_usage: { input_tokens: expect.any(Number) } });
  });

  test('is bounded, whatever the arguments of a call', () => {
    const long = { text: 'x'.repeat(200_000), list: Array.from({ length: 5_000 }, (_, at) => `item ${at}`) };
    const deep = JSON.parse(`${'{"a":'.repeat(200)}1${'}'.repeat(200)}`) as Json;
    const numbers = Array.from({ length: 32 }, () =>
      Array.from({ length: 32 }, () => Array.from({ length: 32 }, () => 1e20)),
    );
    for (const message of told(withArgs({ ...long, deep, numbers })))
      expect(JSON.stringify(message).length, message.id).toBeLessThan(64 * 1024);
  });

  test('still names every event', () => {
    const records = withArgs({ text: 'x'.repeat(200_000) });
    const types = records.flatMap(({ events }) => events.map(({ type }) => type));
    expect(
      told(records)
        .filter(isSnapshot)
        .map(({ event }) => event.type),
    ).toEqual(types);
  });

  test('omits the ids of commands, and the context unless it is requested', () => {
    const records = journal('follow-up');
    const [last] = told(records).filter(isSnapshot).slice(-1);
    expect(last?.snapshot.context).toHaveProperty('turn');
    expect(last?.snapshot.context).not.toHaveProperty('command_ids');
    for (const message of told(records, { context: false }))
      if ('snapshot' in message) expect(message.snapshot.context).toEqual({});
  });
});

describe('a damaged journal is inspected up to the damage', () => {
  const records = journal('follow-up');
  const messagesOf = (broken: readonly JournalRecord[]) => {
    const inspector = new SessionInspector(records[0]?.session_id ?? '');
    const messages: InspectionMessage[] = [];
    let code: unknown = null;
    try {
      for (const record of broken) for (const message of inspector.take(record)) messages.push(message);
    } catch (error) {
      ({ code } = error as { code?: unknown });
    }
    return { code, upTo: messages.at(-1)?.coxswain.n };
  };
  const change = (n: number, by: Partial<JournalRecord>) =>
    records.map((record) => (record.n === n ? ({ ...record, ...by } as JournalRecord) : record));

  test('a record is missing', () =>
    expect(messagesOf(records.filter(({ n }) => n !== 3))).toEqual({ code: 'chain_broken', upTo: 2 }));
  test('a record is another session’s', () =>
    expect(messagesOf(change(3, { session_id: 'other' }))).toEqual({ code: 'chain_broken', upTo: 2 }));
  test('a record says another state', () =>
    expect(messagesOf(change(3, { state: 'failed' }))).toEqual({ code: 'replay_diverged', upTo: 3 }));
  test('an event does not fit', () =>
    expect(messagesOf(change(3, { events: [{ type: 'turn_start', turn: 9 }] }))).toMatchObject({
      code: 'replay_diverged',
    }));
  test('another version of the machine has made it', () => {
    const other = records.map((record) => ({
      ...record,
      ...(record.n === 3 ? { state: 'failed' as const } : {}),
      events: record.events.map((event) => (event.type === 'agent_start' ? { ...event, machine_version: 999 } : event)),
    }));
    expect(messagesOf(other)).toMatchObject({ code: 'machine_version_unknown' });
  });
});

test('an inspector cannot continue from another session, or from after its first shown record', () => {
  const [name = ''] = journalNames;
  const records = journal(name);
  const inspector = new SessionInspector(records[0]?.session_id ?? '');
  for (const record of records.slice(0, 2)) for (const _ of inspector.take(record));
  const { fold } = inspector;
  expect(() => new SessionInspector('another', { from: 9, after: fold })).toThrow('does not follow record 2');
  expect(() => new SessionInspector(fold.sessionId, { from: 2, after: fold })).toThrow('does not follow record 2');
});
