/** What a fork can change at a record. */
import type { JournalRecord } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { forkChanges, forkPromptOf } from '../src/session/fork-changes.ts';

const record = (input: object, state: JournalRecord['state'] = 'provisioning') =>
  ({ input: { type: 'command', ...input }, state }) as unknown as JournalRecord;

test.each([
  ['a start', record({ verb: 'start', body: { prompt: 'Begin.' } }), { kind: 'message', text: 'Begin.' }],
  ['a steer', record({ verb: 'steer', body: { body: 'Stop.' } }), { kind: 'message', text: 'Stop.' }],
  ['an approval', record({ verb: 'approve', body: { decision: 'allow' } }), { kind: 'none' }],
  ['the end of a run', record({ type: 'close_outcome' }, 'stopped'), { kind: 'next', text: '' }],
  ['a start with images', record({ verb: 'start', body: { messages: [] } }), { kind: 'none' }],
  ['a record that has not come', undefined, { kind: 'none' }],
])('of %s', (_what, given, prompt) => {
  expect(forkPromptOf(given)).toEqual(prompt);
});

test('only what was changed is sent', () => {
  const prompt = { kind: 'message', text: 'Begin.' } as const;
  expect(forkChanges(prompt, { prompt: 'Begin.', model: 'a/b' }, 'a/b')).toBeUndefined();
  expect(forkChanges(prompt, { prompt: 'Start over.', model: ' c/d ' }, 'a/b')).toEqual({
    ...{ prompt: 'Start over.', model: 'c/d' },
  });
  expect(forkChanges({ kind: 'next', text: '' }, { prompt: ' ', model: '' }, null)).toBeUndefined();
  expect(forkChanges({ kind: 'none' }, { prompt: 'Lost.', model: '' }, null)).toBeUndefined();
});
