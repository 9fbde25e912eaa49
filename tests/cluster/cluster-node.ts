/** One server of a cluster: a process that is killed, stopped where it stands and started again, on its ports and store. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { stopProcess } from '../contracts/stop-process.ts';
import { askUntil } from '../e2e/kit/ask-until.ts';
import type { NodeAddress } from './node-config.ts';

/** What a node is doing. */
export type NodeState = 'up' | 'paused' | 'down';

/** How a node is run. */
export interface NodeSpec {
  readonly address: NodeAddress;
  readonly binary: string;
  readonly configFile: string;
  readonly logFile: string;
  readonly storeDir: string;
  /** Words before the command: `ip netns exec NAME` for a node in a network of its own. */
  readonly through: readonly string[];
}

/** A store is read at the start, and a leader is found. */
const READY_PATIENCE_MS = 60_000;
const HEALTH_TIMEOUT_MS = 2_000;

const running = new Set<ChildProcess>();
// Whoever is broken off must leave nobody behind.
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1));

/** See the top of the file. */
export class ClusterNode {
  readonly #spec: NodeSpec;
  #child: ChildProcess | null = null;
  #exited: Promise<unknown> = Promise.resolve();
  #isPaused = false;

  constructor(spec: NodeSpec) {
    this.#spec = spec;
  }

  get name(): string {
    return this.#spec.address.name;
  }

  /** Without credentials: `nats://127.0.0.1:4222`. */
  get url(): string {
    const { host, clientPort } = this.#spec.address;
    return `nats://${host}:${clientPort}`;
  }

  get address(): NodeAddress {
    return this.#spec.address;
  }

  get storeDir(): string {
    return this.#spec.storeDir;
  }

  get logFile(): string {
    return this.#spec.logFile;
  }

  get state(): NodeState {
    if (this.#child === null) return 'down';
    return this.#isPaused ? 'paused' : 'up';
  }

  /** Process id; null while it is down. */
  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  /** Starts it. Resolves when the process is there; {@link ready} says when it serves. */
  async start(): Promise<void> {
    if (this.#child !== null) throw new Error(`${this.name} runs already`);
    const [command, ...args] = [...this.#spec.through, this.#spec.binary, '-c', this.#spec.configFile];
    const child = spawn(command as string, args, { stdio: 'ignore', detached: true });
    this.#child = child;
    this.#isPaused = false;
    running.add(child);
    this.#exited = once(child, 'exit').finally(() => {
      running.delete(child);
      if (this.#child === child) this.#child = null;
    });
    await once(child, 'spawn');
  }

  /** Kills it -9; resolves when it is gone. Nothing where it is down. */
  kill(): Promise<void> {
    return this.#end('SIGKILL');
  }

  /** Asks it to end in order: it hands leadership over first. Resolves when it is gone. */
  terminate(): Promise<void> {
    return this.#end('SIGTERM');
  }

  /** Stops the process: its connections stay open, and nothing answers once this has resolved. Does nothing while it is down. */
  async pause(): Promise<void> {
    const pid = this.#child?.pid;
    this.#isPaused = pid !== undefined;
    if (pid !== undefined) await stopProcess(pid);
  }

  /** Lets it go on. */
  resume(): void {
    this.#child?.kill('SIGCONT');
    this.#isPaused = false;
  }

  /** Whether it says that it serves, and that its streams and consumers are up to date. */
  async isHealthy(): Promise<boolean> {
    const { host, monitorPort } = this.#spec.address;
    try {
      const signal = AbortSignal.timeout(HEALTH_TIMEOUT_MS);
      const answer = await fetch(`http://${host}:${monitorPort}/healthz`, { signal });
      return ((await answer.json()) as { status?: string }).status === 'ok';
    } catch {
      // It does not listen yet, or stands still.
      return false;
    }
  }

  /** Waits until it is healthy; fails at once where it has ended meanwhile. */
  async ready(patienceMs = READY_PATIENCE_MS): Promise<void> {
    await askUntil(
      `${this.name} to be healthy`,
      async () => {
        if (this.#child === null) throw new Error(`${this.name} has ended:\n${this.told}`);
        return this.isHealthy();
      },
      patienceMs,
    );
  }

  /** The end of its log, for failures. */
  get told(): string {
    try {
      return readFileSync(this.#spec.logFile, 'utf8').split('\n').slice(-30).join('\n');
    } catch {
      // It has not come so far.
      return '(no log)';
    }
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    if (this.#child === null) return;
    this.#child.kill(signal);
    // One that stands still hears nothing but a kill.
    if (this.#isPaused) this.#child.kill('SIGCONT');
    await this.#exited;
  }
}
