/** Processes that a test starts: their output is kept, and none outlives the test. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join, resolve } from 'node:path';
import { bundledProgram, bundledPrograms } from './bundled.ts';
import { cleanEnv } from './clean-env.ts';
import { isShort, runShort } from './cox-runner.ts';
import { until } from './until.ts';

/** The repository. */
export const REPOSITORY = resolve(import.meta.dirname, '../../..');
/**
 * Flags of Node for processes that live for seconds: optimizing their code costs a fifth of their CPU time, and collecting
 * garbage while they load a tenth.
 */
export const SHORT_LIVED = [
  '--no-opt',
  '--single-threaded-gc',
  '--min-semi-space-size=32',
  '--max-semi-space-size=32',
] as const;
const programs = await bundledPrograms();
/** The command line's entry. */
export const COX_MAIN = join(programs, 'main.mjs');
/** The sessions service's entry. */
export const SESSIONS_MAIN = join(programs, 'sessions.mjs');
/** `standby-main.ts`. */
export const STANDBY_MAIN = join(programs, 'standby.mjs');
/** `gateway-main.ts`. */
export const GATEWAY_MAIN = join(programs, 'gateway.mjs');
/** `left-behind-main.ts`. */
export const LEFT_BEHIND_MAIN = join(programs, 'left-behind.mjs');

/** `served-main.ts`. */
export const SERVED_MAIN = join(programs, 'served.mjs');

/** How a process ended. */
export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

const running = new Set<ChildProcess>();
// A test run that is broken off must leave nobody behind.
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** What a command or process has written. */
class Output {
  stdout = '';
  stderr = '';

  /** Lines of stdout that are complete. */
  get lines(): string[] {
    return this.stdout.split('\n').slice(0, -1);
  }

  /** Lines of stdout as JSON. */
  get json(): Record<string, unknown>[] {
    return this.lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  }

  /** The end of both, for failures. */
  get told(): string {
    return `\n--- stdout\n${this.stdout.slice(-4_000)}\n--- stderr\n${this.stderr.slice(-4_000)}`;
  }
}

type ChildArguments = [args: readonly string[], options?: { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv }];

/** A process of the test's own. */
export class Child extends Output {
  readonly process: ChildProcess;
  readonly exited: Promise<Exit>;
  #exit: Exit | null = null;

  /** Starts node on a program: one of those above, or another bundle. */
  constructor(main: string, ...[args, options = {}]: ChildArguments) {
    super();
    const flags = main === GATEWAY_MAIN ? [] : SHORT_LIVED;
    this.process = spawn(process.execPath, [...flags, main, ...args], {
      cwd: options.cwd ?? REPOSITORY,
      env: cleanEnv(options.env),
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    running.add(this.process);
    // A child that is gone takes no more input; its exit says what happened.
    this.process.stdin?.on('error', () => undefined);
    this.process.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.stdout += text;
    });
    this.process.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text;
    });
    this.exited = once(this.process, 'close').then(([code, signal]) => {
      running.delete(this.process);
      this.#exit = { code, signal };
      return this.#exit;
    });
  }

  /** Starts a program of a user in TypeScript, bundled with the packages of this repository. */
  static async ofSource(file: string, ...rest: ChildArguments): Promise<Child> {
    return new Child(await bundledProgram(file), ...rest);
  }

  get pid(): number {
    return this.process.pid as number;
  }

  get exit(): Exit | null {
    return this.#exit;
  }

  /** Waits for something in the output; fails at once where the process ends without it. */
  async says(what: string | RegExp, stream: 'stdout' | 'stderr' = 'stdout'): Promise<void> {
    const found = () => (typeof what === 'string' ? this[stream].includes(what) : what.test(this[stream]));
    await until(`${what} on ${stream}`, () => {
      if (found()) return true;
      if (this.#exit) throw new Error(`ended (${JSON.stringify(this.#exit)}) without ${what}: ${this.told}`);
      return false;
    }).catch((error: Error) => {
      throw new Error(`${error.message}: ${this.told}`);
    });
  }

  /** Kills it -9 and waits for its end. */
  async kill(): Promise<void> {
    this.process.kill('SIGKILL');
    await this.exited;
  }

  /** Asks it to end, and waits. */
  async terminate(signal: NodeJS.Signals = 'SIGTERM'): Promise<Exit> {
    this.process.kill(signal);
    return this.exited;
  }
}

/** How a `cox` ended. */
export type CoxEnd = Output & { readonly code: number | null };

/** What a `cox` is started with. */
export interface CoxOptions {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  /** What it reads. */
  readonly input?: string;
  /** Whether its line is refused before anything starts, so that it needs no process of its own. */
  readonly refused?: boolean;
}

/**
 * Runs `cox` to its end with nothing on its standard input. A command that only asks or tells on a bus that runs
 * shares the process of all such commands ({@link runShort}).
 */
export async function cox(args: readonly string[], options: CoxOptions = {}): Promise<CoxEnd> {
  const { cwd = REPOSITORY, env, input, refused = false } = options;
  const isOnBus = env?.NATS_URL !== undefined || args.includes('--nats') || ['admin', 'init'].includes(args[0] ?? '');
  if (refused || (input === undefined && isOnBus && isShort(args))) {
    const { code, stdout, stderr } = await runShort(args, cwd, cleanEnv(env));
    return Object.assign(new Output(), { code, stdout, stderr });
  }
  const child = new Child(COX_MAIN, args, { cwd, ...(env && { env }) });
  child.process.stdin?.end(input ?? '');
  const { code } = await child.exited;
  return Object.assign(child, { code });
}

/** Whether a process is there; one that waits to be reaped is not. */
export function lives(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    // No such process.
    return false;
  }
}
