/** Waits until a host has processed the stored commands of a session. */
import { expect, test } from 'vitest';
import { untilProcessed } from '../src/run/mod.ts';

test('the session is shown when its host has processed all stored commands', async () => {
  const counts = [2, 1, 0];
  await untilProcessed({ storedCommands: async () => counts.shift() as number }, new AbortController().signal);
  expect(counts).toEqual([]);
});

test('an abort ends the wait', async () => {
  const leaving = new AbortController();
  let looks = 0;
  const storedCommands = async () => {
    looks += 1;
    leaving.abort();
    return 1;
  };
  await untilProcessed({ storedCommands }, leaving.signal);
  expect(looks).toBe(1);
});
