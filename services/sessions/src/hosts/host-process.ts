/** A session host in a separate process, as the service that forked it sees it. */
import { type ChildProcess, fork } from 'node:child_process';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type FromHost, type HostSettings, ofSentError, type ToHost } from './host-messages.ts';
import type { HostHandle } from './supervise-hosts.ts';

/** `session-host`, next to this file in the source, and next to the bundle's other files when bundled. */
const ENTRY = fileURLToPath(new URL(`./session-host${extname(import.meta.url)}`, import.meta.url));
/** A host that does not answer within this time is unhealthy: its event loop is blocked. */
const ANSWER_WITHIN_MS = 1_000;
/** In-flight calls have ten seconds to end, and the export of spans three. */
const STOP_WITHIN_MS = 20_000;
/** The exit of a host that stopped cleanly. */
const STOPPED = 'exit code 0';

interface Waiting {
  resolve(value: string | null): void;
  reject(error: Error): void;
}

/** Forks a host on construction. */
export class HostProcess implements HostHandle {
  readonly ready: Promise<string>;
  readonly ended: Promise<string>;
  readonly failed: Promise<Error>;
  readonly #child: ChildProcess;
  /** Open questions. Each is removed after at most {@link ANSWER_WITHIN_MS}. */
  readonly #waiting = new Map<number, Waiting>();
  readonly #name: string;
  #serial = 0;
  #hasEnded = false;
  #reported: Error | null = null;

  /**
   * @param env environment of the host.
   * @param flags flags of Node, before those of this process.
   */
  constructor(settings: HostSettings, env: NodeJS.ProcessEnv, flags: readonly string[] = []) {
    this.#name = settings.hostName;
    this.#child = fork(ENTRY, [settings.hostName], {
      env,
      execArgv: [...flags, ...process.execArgv],
      // Settings contain credentials: they are neither in the command line nor in the environment.
      serialization: 'advanced',
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    this.ended = new Promise((resolve) => {
      this.#child.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`));
      this.#child.once('error', (error) => resolve(error.message));
    });
    let fail: (error: Error) => void = () => undefined;
    this.failed = new Promise((resolve) => {
      fail = resolve;
    });
    const ready = new Promise<string>((resolve) => {
      this.#child.on('message', (message: FromHost) => {
        if (message.type === 'ready') resolve(message.hostId);
        else if (message.type === 'failed') {
          this.#reported = ofSentError(message.error);
          fail(this.#reported);
        } else this.#answered(message);
      });
    });
    this.ready = Promise.race([
      ready,
      this.failed.then((error) => Promise.reject(error)),
      this.ended.then((how) => Promise.reject(new Error(`it ended before it served: ${how}`))),
    ]);
    // A host may be stopped before it is ready. Then no caller waits for this promise.
    this.ready.catch(() => undefined);
    void this.ended.then((how) => {
      this.#hasEnded = true;
      for (const { reject } of this.#waiting.values()) reject(new Error(`it has ended: ${how}`));
    });
    this.#send({ type: 'start', settings });
  }

  health(): Promise<string | null> {
    return this.#ask('health');
  }

  async metrics(): Promise<string> {
    return (await this.#ask('metrics')) ?? '';
  }

  async stop(): Promise<void> {
    if (this.#hasEnded) return;
    this.#send({ type: 'stop' });
    const late = setTimeout(() => this.#child.kill('SIGKILL'), STOP_WITHIN_MS);
    const how = await this.ended;
    clearTimeout(late);
    if (how !== STOPPED)
      throw this.#reported ?? new Error(`the session host ${this.#name} did not stop in order: ${how}`);
  }

  #ask(what: 'health' | 'metrics'): Promise<string | null> {
    const id = ++this.#serial;
    let late: NodeJS.Timeout | undefined;
    const answer = new Promise<string | null>((resolve, reject) => {
      const fail = () => reject(new Error(`it does not answer within ${ANSWER_WITHIN_MS} ms`));
      late = setTimeout(fail, ANSWER_WITHIN_MS);
      this.#waiting.set(id, { resolve, reject });
      this.#send({ type: 'ask', id, what });
    });
    return answer.finally(() => {
      clearTimeout(late);
      this.#waiting.delete(id);
    });
  }

  #answered(message: Extract<FromHost, { readonly id: number }>): void {
    const waiting = this.#waiting.get(message.id);
    if (message.type === 'answer') waiting?.resolve(message.value);
    else waiting?.reject(new Error(message.message));
  }

  /** A host that has exited receives no message; its exit is reported by `ended`. */
  #send(message: ToHost): void {
    this.#child.send(message, () => undefined);
  }
}
