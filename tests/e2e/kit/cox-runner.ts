/** Commands of `cox` that only ask and tell, run in one process for each worker of the tests. */
import { type ChildProcess, fork } from 'node:child_process';
import { join } from 'node:path';
import { OPTIMIZE_RARELY } from '../../optimize-rarely.ts';
import { bundledPrograms } from './bundled.ts';
import type { RunnerAnswer, RunnerRequest } from './runner-main.ts';

/**
 * What follows, sends a command or reads, and then ends. What serves, looks after its machine or loads modules of its
 * user has a process of its own, as have all whose start, signals or streams are in question.
 */
const SHORT_COMMANDS: ReadonlySet<string> = new Set([
  ...['admin', 'approval', 'approve', 'attach', 'cancel', 'cancel-call', 'deny', 'env', 'hook', 'init', 'ls'],
  ...['message', 'persona pause', 'persona remove', 'persona resume', 'run', 'session', 'steer', 'tool'],
]);
/** Commands of these topics that look after their machine or load modules of their user. */
const LONG_COMMANDS: ReadonlySet<string> = new Set(['admin streams', 'session import']);
const SERVED = 'persona list --served';
/** Texts that standard input gives, and files that are watched. */
const OF_ITS_PROCESS = /^(-|\/dev\/.*|--steering-file.*)$/;

/** Whether a command line reads a journal from a file, so that no bus is needed and nothing is started. */
export function isOfFile([group, command, source = '']: readonly string[]): boolean {
  return group === 'session' && command === 'inspect' && source.endsWith('.jsonl');
}

/** Whether a command line can be run by {@link runShort} where a bus runs that it goes to. */
export function isShort(args: readonly string[]): boolean {
  const [word = ''] = args;
  const pair = args.slice(0, 2).join(' ');
  const isListed = SHORT_COMMANDS.has(word) || SHORT_COMMANDS.has(pair) || args.slice(0, 3).join(' ') === SERVED;
  return isListed && !LONG_COMMANDS.has(pair) && !args.some((one) => OF_ITS_PROCESS.test(one));
}

const main = join(await bundledPrograms(), 'runner.mjs');
const waiting = new Map<number, { resolve(answer: RunnerAnswer): void; reject(error: Error): void }>();
let runner: ChildProcess | null = null;
let lastId = 0;

/**
 * Runs one command line to its end.
 * @param cwd the folder that relative paths start from.
 * @param env the whole environment.
 */
export function runShort(args: readonly string[], cwd: string, env: NodeJS.ProcessEnv): Promise<RunnerAnswer> {
  runner ??= start(main);
  lastId += 1;
  const request: RunnerRequest = { id: lastId, args, env: { ...env, INIT_CWD: cwd } };
  const answer = new Promise<RunnerAnswer>((resolve, reject) => waiting.set(request.id, { resolve, reject }));
  runner.send(request);
  return answer;
}

function start(program: string): ChildProcess {
  const execArgv = ['--single-threaded-gc', ...OPTIMIZE_RARELY];
  const child = fork(program, [], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'], execArgv });
  child.on('message', (answer: RunnerAnswer) => {
    waiting.get(answer.id)?.resolve(answer);
    waiting.delete(answer.id);
  });
  child.once('exit', (code, signal) => {
    runner = null;
    for (const { reject } of waiting.values()) reject(new Error(`the runner of cox has ended: ${signal ?? code}`));
    waiting.clear();
  });
  // A worker that has no more tests must end.
  child.unref();
  child.channel?.unref();
  return child;
}
