/**
 * Processes that a run starts, kills, stops and continues, each under a name; every deed stands in the history. Their output goes to
 * files, so that it is there afterwards, and none outlives the run.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { cleanEnv } from '../e2e/kit/clean-env.ts';
import type { HistoryWriter, Role } from './history.ts';

/** How a process of a fleet is started. */
export interface ProcessSpec {
  readonly program: string;
  readonly args?: readonly string[];
  /** Words before the command, which become it: `ip netns exec NAME`. */
  readonly through?: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  /** It is up when its output says this. */
  readonly upWhen: string;
}

/** A process of a fleet, as it is now. */
export interface FleetProcess {
  readonly name: string;
  readonly pid: number;
  /** Where its output goes. */
  readonly logFile: string;
  readonly isPaused: boolean;
}

interface Running {
  readonly name: string;
  readonly logFile: string;
  readonly child: ChildProcess;
  readonly ended: Promise<unknown>;
  isPaused: boolean;
  isUp: boolean;
}

const UP_WITHIN_MS = 60_000;
const LOOKS_EVERY_MS = 25;

/** See the top of the file. */
export class ProcessFleet {
  readonly role: Role;
  readonly #folder: string;
  readonly #history: HistoryWriter;
  readonly #specOf: (name: string) => ProcessSpec;
  readonly #running = new Map<string, Running>();
  readonly #all = new Set<ChildProcess>();
  readonly #mindExit = () => this.#killAll();
  #serial = 0;

  /**
   * @param folder for the logs.
   * @param specOf how the process of a name is started.
   */
  constructor(role: Role, folder: string, history: HistoryWriter, specOf: (name: string) => ProcessSpec) {
    this.role = role;
    this.#folder = folder;
    this.#history = history;
    this.#specOf = specOf;
    // A run that is broken off must leave nobody behind.
    process.once('exit', this.#mindExit);
  }

  /** Those that run, in the order of their names. */
  get running(): readonly FleetProcess[] {
    return [...this.#running.values()]
      .map(({ name, child, logFile, isPaused }) => ({ name, pid: child.pid as number, logFile, isPaused }))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** Whether one of this name runs, and says that it is up. */
  isUp(name: string): boolean {
    return this.#running.get(name)?.isUp === true;
  }

  /** Starts one and resolves when it is up. Its name is free again when it has ended. */
  async start(name: string): Promise<void> {
    if (this.#running.has(name)) throw new Error(`the ${this.role} ${name} runs already`);
    const spec = this.#specOf(name);
    const logFile = join(this.#folder, `${this.role}-${name}-${++this.#serial}.log`);
    const output = openSync(logFile, 'a');
    const [command, ...args] = [...(spec.through ?? []), process.execPath, spec.program, ...(spec.args ?? [])];
    const child = spawn(command as string, args, {
      env: cleanEnv(spec.env),
      // Whoever reads its standard input ends when the harness does.
      stdio: ['pipe', output, output],
    });
    closeSync(output);
    child.stdin?.on('error', () => undefined);
    this.#all.add(child);
    const one: Running = { name, logFile, child, ended: once(child, 'exit'), isPaused: false, isUp: false };
    this.#running.set(name, one);
    const tell = this.#teller(one);
    tell('started');
    child.once('exit', (code, signal) => {
      this.#all.delete(child);
      if (this.#running.get(name) === one) this.#running.delete(name);
      tell('ended', signal ?? `code ${code}`);
    });
    const giveUpAtMs = performance.now() + UP_WITHIN_MS;
    while (!readFileSync(logFile, 'utf8').includes(spec.upWhen)) {
      // Killed while it started: that is what happens here.
      if (child.exitCode !== null || child.signalCode !== null) return;
      if (performance.now() > giveUpAtMs) throw new Error(`the ${this.role} ${name} does not come up: ${logFile}`);
      await sleep(LOOKS_EVERY_MS);
    }
    one.isUp = true;
    tell('up');
  }

  /** Kills one -9; resolves when it is gone. */
  async kill(name: string): Promise<void> {
    const one = this.#one(name);
    this.#teller(one)('killed');
    one.child.kill('SIGKILL');
    await one.ended;
  }

  /** Asks one to end in order; resolves when it has. */
  async terminate(name: string): Promise<void> {
    const one = this.#one(name);
    this.#teller(one)('told_to_stop');
    one.child.kill('SIGTERM');
    await one.ended;
  }

  /** Stops one where it stands. */
  pause(name: string): void {
    const one = this.#one(name);
    one.child.kill('SIGSTOP');
    one.isPaused = true;
    this.#teller(one)('paused');
  }

  /** Lets one go on that was stopped. */
  resume(name: string): void {
    const one = this.#one(name);
    this.#teller(one)('resumed');
    one.isPaused = false;
    one.child.kill('SIGCONT');
  }

  /** Ends all of them: in order where they can, else at once. */
  async stopAll(graceMs = 15_000): Promise<void> {
    const late = new AbortController();
    const ends = [...this.#running.values()].map(async ({ child, ended }) => {
      child.kill('SIGTERM');
      // One that stands still hears of it when it goes on.
      child.kill('SIGCONT');
      await ended;
    });
    await Promise.race([Promise.all(ends), sleep(graceMs, undefined, { signal: late.signal }).catch(() => undefined)]);
    late.abort();
    this.#killAll();
    await Promise.all(ends);
    process.removeListener('exit', this.#mindExit);
  }

  #one(name: string): Running {
    const one = this.#running.get(name);
    if (!one) throw new Error(`the ${this.role} ${name} does not run`);
    return one;
  }

  #teller({ name, child }: Running) {
    return (did: 'started' | 'up' | 'killed' | 'paused' | 'resumed' | 'told_to_stop' | 'ended', detail?: string) =>
      this.#history.push({
        what: 'process',
        role: this.role,
        name,
        pid: child.pid as number,
        did,
        ...(detail === undefined ? {} : { detail }),
      });
  }

  #killAll(): void {
    for (const child of this.#all) child.kill('SIGKILL');
  }
}
