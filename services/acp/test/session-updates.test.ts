/** What an editor is told of a session beyond its texts and calls: what it has cost, and who has said what. */
import type { SessionUpdate } from '@agentclientprotocol/sdk';
import { GENESIS_HASH, type JournalRecord, type SessionEvent, type Usage } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { SessionSettings } from '../src/session-settings.ts';
import { SessionUpdates } from '../src/session-updates.ts';

const USED: Usage = { input_tokens: 7, output_tokens: 5 };
const WINDOW = 1_000;

interface Following {
  (...events: object[]): SessionUpdate[];
  /** The record that makes the session idle between jobs. */
  idles(): SessionUpdate[];
}

function following(): Following {
  const settings = new SessionSettings({ models: ['a/b'], modes: {}, mode: undefined, baseUrl: undefined });
  const updates = new SessionUpdates({ root: '/', settings, isShown: (id) => id === 'own' });
  let n = 0;
  const record = (events: readonly object[], state: JournalRecord['state'] = 'assistant_streaming'): JournalRecord => ({
    ...{ v: 1, session_id: 's', n: ++n, epoch: 1, attempt: 'a', prev_hash: GENESIS_HASH },
    at: '2026-01-01T00:00:00.000Z',
    input: { type: 'owned', epoch: 1, host: 'h' } as unknown as JournalRecord['input'],
    events: events as SessionEvent[],
    state,
    effects_open: [],
  });
  const provision = { definition: {}, model: { name: 'a/b' }, daemon: false, compaction: { window: WINDOW } };
  updates.record(record([{ type: 'persona_changed', provision }]));
  const told = (...events: object[]) => updates.record(record(events)).updates;
  return Object.assign(told, { idles: () => updates.record(record([], { daemon_idle: 'waiting' })).updates });
}

const answered = (turn: number) => ({
  ...{ type: 'message_complete', turn, finish_reason: 'stop', usage: USED, body_streamed: false, duration_ms: 1 },
  ...{ attempts: 1, message: { role: 'assistant', content: [{ type: 'text', text: 'x' }] } },
});
const turnEnd = (turn: number, cost_usd?: number) => ({ type: 'turn_end', turn, usage: USED, cost_usd });
const runEnd = (run: number, cost_usd?: number) => ({
  ...{ type: 'agent_end', run, stop_reason: 'end_turn', turns: 1, usage: USED, pending: 0, cost_usd },
});
const spentIn = (updates: readonly SessionUpdate[]) =>
  updates.filter(({ sessionUpdate }) => sessionUpdate === 'usage_update');
const usage = (cost?: number) => ({
  ...{ sessionUpdate: 'usage_update', used: 12, size: WINDOW },
  ...(cost === undefined ? {} : { cost: { amount: cost, currency: 'USD' } }),
});

test('usage is shown once for each run, at its end, with the cost of all runs', () => {
  const told = following();
  expect(spentIn(told(answered(1)))).toEqual([]);
  expect(spentIn(told(turnEnd(1, 0.5)))).toEqual([]);
  expect(spentIn(told(answered(2), turnEnd(2, 0.25), runEnd(1, 0.75)))).toEqual([usage(0.75)]);
  expect(spentIn(told(answered(1), turnEnd(1, 1), runEnd(2, 1)))).toEqual([usage(1.75)]);
});

test('of a session that idles between jobs, usage is shown once for each job', () => {
  const told = following();
  expect(spentIn(told(answered(1), turnEnd(1, 0.5)))).toEqual([]);
  expect(spentIn(told.idles())).toEqual([usage(0.5)]);
  expect(spentIn(told.idles())).toEqual([]);
  told(answered(2), turnEnd(2, 0.25));
  expect(spentIn(told.idles())).toEqual([usage(0.75)]);
});

test('the cost of a model without a price is not shown', () => {
  const told = following();
  expect(spentIn(told(answered(1), turnEnd(1), runEnd(1)))).toEqual([usage()]);
  expect(spentIn(told(answered(1), turnEnd(1, 1), runEnd(2, 1)))).toEqual([usage()]);
});

test('what others say is a message each, and what the editor has said itself is not shown again', () => {
  const told = following();
  const said = (command_id: string, text: string) => ({
    ...{ type: 'message_injected', command_id, turn: 1, origin: 'followup' },
    message: { role: 'user', content: [{ type: 'text', text }] },
  });
  const shown = told(said('one', 'This.'), said('own', 'Mine.'), said('two', 'And that.'));
  expect(shown.filter(({ sessionUpdate }) => sessionUpdate === 'user_message_chunk')).toEqual([
    { sessionUpdate: 'user_message_chunk', content: { type: 'text', text: 'This.' }, messageId: 'one' },
    { sessionUpdate: 'user_message_chunk', content: { type: 'text', text: 'And that.' }, messageId: 'two' },
  ]);
});
