/**
 * Runs command lines of `cox` one after another or at once in a process that has loaded it, for a test's worker: loading
 * it takes ten times what most commands do. Each has its own environment, standard output and error.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { dispatch } from '../../../libs/cli/src/line/mod.ts';

/** A command line to run. */
export interface RunnerRequest {
  readonly id: number;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
}

/** What a command line has written, and its exit code. */
export interface RunnerAnswer {
  readonly id: number;
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

interface Written {
  stdout: string;
  stderr: string;
}

const commands = new AsyncLocalStorage<Written>();
for (const name of ['stdout', 'stderr'] as const) {
  const stream = process[name];
  const write = stream.write.bind(stream) as (...args: unknown[]) => boolean;
  stream.write = ((chunk: string | Uint8Array, ...rest: unknown[]): boolean => {
    const written = commands.getStore();
    if (written === undefined) return write(chunk, ...rest);
    written[name] += typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('utf8');
    const done = rest.findLast((one): one is () => void => typeof one === 'function');
    if (done) process.nextTick(done);
    return true;
  }) as typeof stream.write;
}

process.on('message', ({ id, args, env }: RunnerRequest) => {
  const written: Written = { stdout: '', stderr: '' };
  void commands
    .run(written, () => dispatch(args, env))
    .then((code) => process.send?.({ id, code, ...written } satisfies RunnerAnswer));
});
// The worker that started it has gone.
process.on('disconnect', () => process.exit());
