/** The standard streams of `cox acp` and `cox mcp`. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { reserveForProtocol } from '../src/service/mod.ts';

const STREAMS = [process.stdout, process.stderr] as const;
const METHODS = ['log', 'info', 'debug', 'warn', 'dir', 'error'] as const;
let restore: () => void;

beforeEach(() => {
  const listeners = STREAMS.map((stream) => stream.listeners('error') as ((error: Error) => void)[]);
  const methods = METHODS.map((method) => [method, console[method]] as const);
  restore = () => {
    for (const [method, original] of methods) console[method] = original;
    for (const [i, stream] of STREAMS.entries()) {
      stream.removeAllListeners('error');
      for (const listener of listeners[i] ?? []) stream.on('error', listener);
    }
  };
});
afterEach(() => restore());

test('console output goes to standard error', () => {
  const error = vi.spyOn(console, 'error').mockReturnValue(undefined);
  void reserveForProtocol();
  console.log('from a hook');
  console.dir('from a library');
  expect(error.mock.calls).toEqual([['from a hook'], ['from a library']]);
});

test.each(['stdout', 'stderr'] as const)('write errors of %s replace the end of the process', async (name) => {
  const endsProcess = vi.fn();
  process[name].on('error', endsProcess);
  const lost = reserveForProtocol();
  for (let times = 0; times < 2; times++) process[name].emit('error', new Error('EPIPE'));
  await lost;
  expect(endsProcess).not.toHaveBeenCalled();
});
