/** A service that is stopped while it starts, and a process that is stopped twice. */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
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

// A closed terminal: the kernel and the shell send a SIGHUP each.
test.each([
  ['SIGINT', []],
  ['SIGTERM', []],
  ['SIGHUP', ['stopped']],
] as const)(
  'a second %s ends the process after its exit handlers; a SIGHUP leaves the stop its time',
  async (signal, others) => {
    const module = new URL('../src/service/mod.ts', import.meta.url).href;
    const child = spawn(
      process.execPath,
      [
        ...['--conditions=coxswain-source', '--import', 'tsx', '--input-type=module', '--eval'],
        `import { stopSignal } from '${module}';
       process.on('exit', () => process._rawDebug('files are removed'));
       const stop = stopSignal();
       setInterval(() => undefined, 1_000);
       process._rawDebug('ready');
       await stop.promise;
       stop.release();
       process.once('${signal}', () => setImmediate(() => {
         process._rawDebug('stopped');
         process.exit();
       }));
       process._rawDebug('stopping');`,
      ],
      { stdio: ['ignore', 'ignore', 'pipe'], cwd: import.meta.dirname },
    );
    const lines: string[] = [];
    for await (const line of createInterface({ input: child.stderr })) {
      lines.push(line);
      if (line === 'ready' || line === 'stopping') child.kill(signal);
    }
    expect(lines).toEqual(['ready', 'stopping', ...others, 'files are removed']);
    expect(child.signalCode).toBeNull();
  },
  60_000,
);
