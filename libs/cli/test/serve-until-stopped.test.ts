/** A service that is stopped while it starts. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { serveUntilStopped } from '../src/service/mod.ts';

const KIND = { name: 'sessions', stateDir: '/nowhere', title: () => 'the service' };

/** The listeners of the signal that tests of other files in this process have left: one may end the process. */
let before: readonly NodeJS.SignalsListener[] = [];
const added = () => process.listeners('SIGHUP').filter((listener) => !before.includes(listener));
beforeEach(() => {
  before = process.listeners('SIGHUP');
});
afterEach(() => {
  for (const listener of added()) process.off('SIGHUP', listener);
});

test('a start that fails after a stop signal is no error: the exit code is that of a stop', async () => {
  const states: boolean[] = [];
  const code = await serveUntilStopped(
    KIND,
    async (stopping) => {
      states.push(stopping.aborted);
      for (const listener of added()) listener('SIGHUP');
      states.push(stopping.aborted);
      throw new Error('a host has ended');
    },
    () => expect.unreachable(),
  );
  expect([code, states]).toEqual([0, [false, true]]);
});

test('a start that fails without a stop signal is an error', async () => {
  const serving = serveUntilStopped(
    KIND,
    () => Promise.reject(new Error('no server')),
    () => expect.unreachable(),
  );
  await expect(serving).rejects.toThrow('no server');
});
