/** The driver's side of the host process: forked, asked over IPC, ended with the bench. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { bundle } from '../../scripts/bundle.mjs';
import { youngGeneration } from '../../services/sessions/src/hosts/young-generation.ts';
import type { BenchServer } from './bench-server.ts';
import type { HostCalls, HostNews, HostSettings } from './host-main.ts';

interface Waiting {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/** The host as its users run it: from a bundle. A loader that transforms every file on the way would be measured too. */
async function bundled(): Promise<string> {
  writeBundle(await bundle({ host: 'tests/bench/host-main.ts' }, 'tests/bench/dist'));
  return join(import.meta.dirname, 'dist/host.mjs');
}

/** Writes what was bundled to where it belongs. */
export function writeBundle(files: Awaited<ReturnType<typeof bundle>>): void {
  for (const file of files) {
    mkdirSync(dirname(file.path), { recursive: true });
    writeFileSync(file.path, file.contents);
  }
}

let program: Promise<string> | null = null;

/** A host that runs. */
export class HostProcess {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, Waiting>();
  readonly #listeners = new Set<(news: HostNews) => void>();
  readonly #expecting = new Set<(gone: Error) => void>();
  #serial = 0;
  #gone: Error | null = null;

  private constructor(program: string, flags: readonly string[]) {
    const profileDir = process.env.COX_BENCH_CPU_PROF;
    this.#child = fork(program, [], {
      execArgv: [
        ...youngGeneration(process.env),
        ...flags,
        ...(profileDir ? ['--cpu-prof', `--cpu-prof-dir=${profileDir}`] : []),
      ],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    this.#child.on('message', (message: readonly HostNews[] | { re: number; value?: unknown; error?: string }) => {
      if ('re' in message) return this.#answered(message);
      for (const news of message) for (const listener of this.#listeners) listener(news);
    });
    this.#child.on('exit', (code, signal) => {
      this.#gone = new Error(`the host process has ended: ${signal ?? code}`);
      for (const { reject } of this.#waiting.values()) reject(this.#gone);
      for (const reject of [...this.#expecting]) reject(this.#gone);
      this.#waiting.clear();
    });
    this.listen((news) => {
      if (news.news === 'log' && news.text !== 'up') process.stderr.write(`host: ${news.text}\n`);
    });
  }

  /** Forks a host and lets it in at a server. @param flags of node. */
  static async open(
    { url, token }: Pick<BenchServer, 'url' | 'token'>,
    settings: Omit<HostSettings, 'url' | 'token'> = {},
    flags: readonly string[] = [],
  ): Promise<HostProcess> {
    program ??= bundled();
    const host = new HostProcess(await program, flags);
    await host.call('open', { url, token, ...settings });
    return host;
  }

  /** Kills the process, as nothing in it can hear of. Resolves when it is gone. */
  async kill(): Promise<void> {
    if (this.#gone) return;
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exited;
  }

  /** Asks the host. */
  call<C extends keyof HostCalls>(call: C, arg: Parameters<HostCalls[C]>[0]): ReturnType<HostCalls[C]> {
    const id = ++this.#serial;
    const answer = new Promise((resolve, reject) => {
      if (this.#gone) return reject(this.#gone);
      this.#waiting.set(id, { resolve, reject });
      this.#child.send({ id, call, arg });
    });
    return answer as ReturnType<HostCalls[C]>;
  }

  /** Hears what the host says by itself. @returns a function that ends it. */
  listen(listener: (news: HostNews) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Resolves with the news that `pick` takes; rejects when that takes longer than a minute, or the host is gone. */
  next<T>(pick: (news: HostNews) => T | undefined, boundMs = 60_000): Promise<T> {
    return new Promise((resolve, reject) => {
      const end = () => {
        clearTimeout(timer);
        this.#expecting.delete(fail);
        stop();
      };
      const fail = (error: Error) => {
        end();
        reject(error);
      };
      const timer = setTimeout(
        () => fail(new Error(`nothing of the kind came from the host within ${boundMs} ms`)),
        boundMs,
      );
      const stop = this.listen((news) => {
        const value = pick(news);
        if (value === undefined) return;
        end();
        resolve(value);
      });
      this.#expecting.add(fail);
    });
  }

  /** Ends the host, in order if it can, else at once. */
  async stop(): Promise<void> {
    if (this.#gone) return;
    const exited = once(this.#child, 'exit');
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), 10_000);
    // It may be gone before it has answered.
    await this.call('stop', null).catch(() => undefined);
    await exited;
    clearTimeout(timer);
  }

  #answered({ re, value, error }: { re: number; value?: unknown; error?: string }): void {
    const waiting = this.#waiting.get(re);
    this.#waiting.delete(re);
    if (error === undefined) waiting?.resolve(value);
    else waiting?.reject(new Error(`the host says: ${error}`));
  }
}
