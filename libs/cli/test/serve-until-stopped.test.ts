/** A service that is stopped while it starts. */
import { afterEach, expect, test } from 'vitest';
import { serveUntilStopped } from '../src/service/mod.ts';

const KIND = { name: 'sessions', stateDir: '/nowhere', title: () => 'the service' };

/** The signal's listeners as they were before the test. */
const before = process.listeners('SIGHUP');
afterEach(() => {
  for (const listener of process.listeners('SIGHUP')) if (!before.includes(listener)) process.off('SIGHUP', listener);
});

test('a start that fails after a stop signal is no error: the exit code is that of a stop', async () => {
  const states: boolean[] = [];
  const code = await serveUntilStopped(
    KIND,
    async (stopping) => {
      states.push(stopping.aborted);
      process.emit('SIGHUP', 'SIGHUP');
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
