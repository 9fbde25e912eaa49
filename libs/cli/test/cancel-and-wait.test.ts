/** Leaving the demo. */
import { newCommandId } from '@coxswain/client';
import { expect, test } from 'vitest';
import { cancelAndWait } from '../src/demo/mod.ts';

test('a session that does not end in time is reported with the time, not with the error of an aborted call', async () => {
  const said: string[] = [];
  const session = {
    id: 'demo',
    cancel: async () => ({ commandId: newCommandId(), seq: 1, duplicate: false }),
    result: ({ signal }: { readonly signal?: AbortSignal } = {}) =>
      new Promise<never>((_resolve, reject) => {
        signal?.addEventListener('abort', () => reject(new Error('the caller aborted the call')));
      }),
  };
  await cancelAndWait(session, (text) => said.push(text), 1);
  expect(said.at(-1)).toBe('session demo did not end: it still runs after 1 ms');
});
