/** Runs `cox` as people run it: a process of its own, with its own state folder and no terminal. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { onTestFailed, TestRunner } from 'vitest';
import { COX_MAIN, SHORT_LIVED } from './kit/child.ts';
import { withoutExtraCertificates } from './kit/clean-env.ts';
import { isOfFile, isShort, runShort } from './kit/cox-runner.ts';

const RUN_WITHIN_MS = 120_000;

/** How a `cox` ended. */
export interface CoxEnd {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A `cox` that runs. */
export interface CoxProcess {
  readonly child: ChildProcess;
  readonly end: Promise<CoxEnd>;
  /** What it has written to stdout so far. */
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** Resolves with the first match on stdout or stderr; rejects when it ends or takes too long without one. */
  seen(pattern: RegExp): Promise<RegExpExecArray>;
}

/** What a `cox` is started with: `input` is what it reads, `inputFrom` a path that is opened as its standard input. */
export interface CoxOptions {
  readonly env?: NodeJS.ProcessEnv;
  readonly input?: string;
  readonly inputFrom?: string;
  /** How long it may take before it is killed. Default 60,000. */
  readonly withinMs?: number;
}

/** A folder to work in, with a state folder of its own. */
export class CoxBed {
  readonly folder: string;
  readonly #running = new Set<ChildProcess>();
  /** Whether an instance runs on its state folder. */
  #isUp = false;

  private constructor(folder: string) {
    this.folder = folder;
  }

  static async make(): Promise<CoxBed> {
    return new CoxBed(await mkdtemp(join(tmpdir(), 'cox-e2e-')));
  }

  get stateDir(): string {
    return join(this.folder, 'state');
  }

  /** Writes a file and returns its path. */
  async file(name: string, text: string): Promise<string> {
    const path = join(this.folder, name);
    await writeFile(path, text);
    return path;
  }

  /** Starts `cox`. */
  start(args: readonly string[], options: CoxOptions = {}): CoxProcess {
    const from = options.inputFrom === undefined ? null : openSync(options.inputFrom, 'r');
    const child = spawn(process.execPath, [...SHORT_LIVED, COX_MAIN, ...args], {
      cwd: this.folder,
      env: this.#env(options),
      stdio: [from ?? 'pipe', 'pipe', 'pipe'],
    }) as ChildProcess & { readonly stdout: Readable; readonly stderr: Readable };
    if (from !== null) closeSync(from);
    this.#running.add(child);
    child.stdin?.end(options.input ?? '');
    let stdout = '';
    let stderr = '';
    const looking = new Set<() => void>();
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
      for (const look of looking) look();
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
      for (const look of looking) look();
    });
    const end = new Promise<CoxEnd>((resolve, reject) => {
      const late = setTimeout(() => {
        child.kill('SIGKILL');
        reject(new Error(`cox ${args.join(' ')} took too long\n${stdout}\n${stderr}`));
      }, options.withinMs ?? RUN_WITHIN_MS);
      child.once('close', (code) => {
        clearTimeout(late);
        this.#running.delete(child);
        resolve({ code, stdout, stderr });
      });
    });
    if (args[0] === 'up' && !args.includes('--state-dir')) {
      this.#isUp = true;
      child.once('exit', () => {
        this.#isUp = false;
      });
    }
    // Awaited by those who care; a process that was killed on purpose is no failure.
    end.catch(() => undefined);
    const seen = (pattern: RegExp) =>
      new Promise<RegExpExecArray>((resolve, reject) => {
        const look = () => {
          const match = pattern.exec(stdout) ?? pattern.exec(stderr);
          if (!match) return;
          looking.delete(look);
          resolve(match);
        };
        looking.add(look);
        look();
        end.then(
          () => reject(new Error(`ended without ${pattern}\n${stdout}\n${stderr}`)),
          (error: Error) => reject(error),
        );
      });
    return { child, end, stdout: () => stdout, stderr: () => stderr, seen };
  }

  /** Runs `cox` to its end: what an instance of this folder answers, or a file alone, in the process of short commands. */
  run(args: readonly string[], options: CoxOptions = {}): Promise<CoxEnd> {
    const isAnswered = (this.#isUp && !args.includes('--state-dir')) || args.includes('--nats');
    const hasInput = options.input !== undefined || options.inputFrom !== undefined;
    const isShared = !hasInput && (isOfFile(args) || (isAnswered && isShort(args)));
    const end = isShared ? runShort(args, this.folder, this.#env(options)) : this.start(args, options).end;
    printIfTestFails(args, end);
    return end;
  }

  #env({ env }: CoxOptions): NodeJS.ProcessEnv {
    const { NATS_URL: _bus, COX_MODEL: _model, INIT_CWD: _cwd, ...inherited } = process.env;
    return { ...withoutExtraCertificates(inherited), COX_STATE_DIR: this.stateDir, ...env };
  }

  /** Ends what still runs and removes the folder. */
  async remove(): Promise<void> {
    const running = [...this.#running];
    await Promise.all(
      running.map((child) => {
        const closed = new Promise((resolve) => child.once('close', resolve));
        child.kill('SIGTERM');
        const hard = setTimeout(() => child.kill('SIGKILL'), 15_000);
        return closed.finally(() => clearTimeout(hard));
      }),
    );
    await rm(this.folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }
}

/** Prints how a command ended if its test fails: a comparison of code and stdout does not show the reason on stderr. */
function printIfTestFails(args: readonly string[], end: Promise<CoxEnd>): void {
  // Hooks of a file have no test that can fail. The name of a test in `expect` may be one of the file before in this worker.
  if (TestRunner.getCurrentTest() === undefined) return;
  onTestFailed(async () => {
    const { code, stderr } = await end.catch((error: Error) => ({ code: null, stderr: error.message }));
    console.error(`cox ${args.join(' ')} ended with ${code}, stderr:\n${stderr.slice(-2_000)}`);
  });
}

/** JSON lines, parsed. */
export function jsonLines(text: string): Record<string, unknown>[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}
