import type { Session } from '@coxswain/client';
import { expect, test } from 'vitest';
import type { OpenBus } from '../src/instance/mod.ts';
import { queuedMessage } from '../src/run/mod.ts';

const QUEUED = '01990000-0000-7000-8000-000000000001';
const SHOWN = '01990000-1111-7000-8000-000000000002';

const session = {
  wire: { state: async () => ({ pending: [{ command_id: QUEUED }], reminders: [{ command_id: SHOWN }] }) },
} as unknown as Session;

test.each([
  ['a queued message', '01990000-0', QUEUED],
  ['a shown reminder', '01990000-1', SHOWN],
  ['an unknown id', '01980000-0', '01980000-0'],
])('%s is found by the beginning of its id, and an unknown id is unchanged', async (_what, given, found) => {
  expect(await queuedMessage({ hosted: true } as OpenBus, session, given)).toBe(found);
});
