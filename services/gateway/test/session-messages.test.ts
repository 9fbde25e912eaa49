/** The snapshot of an AG-UI thread is bounded in number and size. */
import type { JournalRecord } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { createMessageIds, SessionMessages } from '../src/agui/mod.ts';

/** The messages of a session whose answers each call a tool with arguments of this size. */
function messagesOf(answers: number, argsChars: number) {
  const messages = new SessionMessages('s', createMessageIds('s', new Set()));
  for (let turn = 1; turn <= answers; turn++) {
    const call = { type: 'call', call_id: `c${turn}`, tool: 't', args: { text: 'x'.repeat(argsChars) } };
    const event = { type: 'message_complete', turn, message: { role: 'assistant', content: [call] } };
    messages.add({
      input: { type: 'model_outcome', effect_id: `e${turn}` },
      events: [event],
    } as unknown as JournalRecord);
  }
  return messages.all.map(({ id }) => id);
}

test('it has the newest 1,000 messages', () => {
  const ids = messagesOf(2_500, 1);
  expect([ids.length, ids[0], ids.at(-1)]).toEqual([1_000, 's:e1501', 's:e2500']);
});

test('it has the newest messages of at most 4 Mi characters, and always the newest one', () => {
  expect(messagesOf(50, 1_000_000)).toEqual(['s:e47', 's:e48', 's:e49', 's:e50']);
  expect(messagesOf(3, 5_000_000)).toEqual(['s:e3']);
});
