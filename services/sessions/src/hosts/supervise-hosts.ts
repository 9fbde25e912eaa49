/**
 * Keeps several session hosts of one service alive.
 *
 * - HOSTS-1 The service starts only if every host starts. The first host starts alone: a wrong setting fails there, once.
 * - HOSTS-2 A host that ends unexpectedly starts again after a pause. The pause doubles with each end in a row.
 * - HOSTS-3 A host that served for a minute begins a new row. The service fails when a row has used up its restarts.
 * - HOSTS-4 A failure that a host reports about the bus concerns all hosts: the service fails without a restart.
 * - HOSTS-5 A service that stops starts no host, and stops also the hosts that are still starting.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type BackOff, delayAfter } from '@coxswain/protocol';

/** One session host, from its launch to its end. */
export interface HostHandle {
  /** Resolves with the host's incarnation when it serves. Rejects when it ends, or fails, before that. */
  readonly ready: Promise<string>;
  /** Resolves when the host has ended, with how: `exit code 1`, `SIGKILL`. Never rejects. */
  readonly ended: Promise<string>;
  /** Resolves when the host reports that it cannot continue on this bus, with the reason. Never rejects. */
  readonly failed: Promise<Error>;
  /** Resolves with a remark or null. Rejects, with the reason, while the host cannot do its work. Bounded in time. */
  health(): Promise<string | null>;
  /** The host's metrics in the text format of Prometheus. Bounded in time. */
  metrics(): Promise<string>;
  /** Stops the host in order, within a bound; nothing to do if it has ended. Rejects if it ended otherwise. */
  stop(): Promise<void>;
}

/** The bounds of restarts: six in a row, with pauses of 0.5 s to 16 s. */
export const RESTARTS = { inRowMax: 6, firstPauseMs: 500, steadyAfterMs: 60_000 } as const;
const PAUSES: BackOff = { firstMs: RESTARTS.firstPauseMs, maxMs: 16_000 };

/** Counts the unexpected ends of one host. */
export class RestartBudget {
  #inRow = 0;

  /**
   * Takes one restart.
   * @param servedMs how long the host served before it ended; 0 if it did not start.
   * @returns the number of this restart in its row, and the pause before it in milliseconds; null if none is left.
   */
  take(servedMs: number): { readonly restart: number; readonly pauseMs: number } | null {
    if (servedMs >= RESTARTS.steadyAfterMs) this.#inRow = 0;
    if (this.#inRow >= RESTARTS.inRowMax) return null;
    this.#inRow += 1;
    return { restart: this.#inRow, pauseMs: delayAfter(this.#inRow, PAUSES) };
  }
}

/** A host ended unexpectedly, and its restarts are used up. */
export class SessionHostEndedError extends Error {
  override readonly name = 'SessionHostEndedError';
  readonly code = 'session_host_ended';

  /** @param host the name of the host. @param why how it ended the last time, or why it did not start. */
  constructor(host: string, why: string) {
    super(`the session host ${host} ended, and ${RESTARTS.inRowMax} restarts in a row failed; the last time: ${why}`);
  }
}

/** An unexpected end that is followed by a restart. */
export interface HostRestart {
  /** The name of the host. */
  readonly host: string;
  /** How it ended, or why it did not start. */
  readonly why: string;
  readonly restart: number;
  readonly pauseMs: number;
}

/** What the supervisor needs. */
export interface Supervision {
  /** Names of the hosts, at least one. */
  readonly names: readonly string[];
  launch(name: string): HostHandle;
  /** Called at each unexpected end that is followed by a restart. Must not throw. */
  onRestart(restart: HostRestart): void;
  /** Milliseconds of a monotonic clock. */
  readonly nowMs?: () => number;
  /** Waits the given time in milliseconds; rejects when the signal aborts. */
  readonly pause?: (ms: number, signal: AbortSignal) => Promise<unknown>;
}

type Slot = { readonly name: string; handle: HostHandle } & (
  | { status: 'starting'; why: string | null }
  | { status: 'serving'; hostId: string }
  | { status: 'pausing'; why: string }
);

/** Hosts that are started, watched, and restarted until they are stopped. */
export class HostSupervisor {
  /** Resolves when the service cannot continue, with the reason. Then stop it. */
  readonly failed: Promise<Error>;
  readonly #supervision: Supervision;
  readonly #nowMs: () => number;
  readonly #pause: (ms: number, signal: AbortSignal) => Promise<unknown>;
  readonly #slots: Slot[] = [];
  readonly #stopping = new AbortController();
  #fail: (error: Error) => void = () => undefined;
  #remark: string | null = null;

  private constructor(supervision: Supervision) {
    this.#supervision = supervision;
    this.#nowMs = supervision.nowMs ?? (() => performance.now());
    this.#pause = supervision.pause ?? ((ms, signal) => sleep(ms, undefined, { signal }));
    this.failed = new Promise((resolve) => {
      this.#fail = resolve;
    });
  }

  /** Starts all hosts. @throws the error of the first host that does not start; then no host is left. */
  static async start(supervision: Supervision): Promise<HostSupervisor> {
    const supervisor = new HostSupervisor(supervision);
    const [first, ...others] = supervision.names;
    try {
      await supervisor.#open(first as string);
      await Promise.all(others.map((name) => supervisor.#open(name)));
    } catch (error) {
      // The first failure is the one to report.
      await supervisor.stop().catch(() => undefined);
      throw error;
    }
    for (const slot of supervisor.#slots) void supervisor.#watch(slot);
    return supervisor;
  }

  /** The incarnations of the hosts that serve. */
  hostIds(): string[] {
    return this.#slots.flatMap((slot) => (slot.status === 'serving' ? [slot.hostId] : []));
  }

  /** Rejects, with the reason, if no host serves, or if one that serves cannot do its work. */
  async ping(): Promise<void> {
    const serving = this.#slots.filter(({ status }) => status === 'serving');
    if (serving.length === 0) throw new Error(`no session host serves: ${this.#restarting()}`);
    const remarks = await Promise.all(
      serving.map(({ name, handle }) =>
        handle.health().catch((error: Error) => {
          throw new Error(`${name}: ${error.message}`);
        }),
      ),
    );
    this.#remark = remarks.find((remark) => remark !== null) ?? null;
  }

  /** Hosts that restart, and the last remark of a host; null without both. A restart of the service would not help. */
  remark(): string | null {
    const parts = [this.#restarting(), this.#remark].filter((part) => part !== null && part !== '');
    return parts.length === 0 ? null : parts.join('; ');
  }

  /** The metrics of all hosts that answer. A host that does not is left out: its series have a gap. */
  async metrics(): Promise<string[]> {
    const serving = this.#slots.filter(({ status }) => status === 'serving');
    const texts = await Promise.all(serving.map(({ handle }) => handle.metrics().catch(() => null)));
    return texts.filter((text) => text !== null);
  }

  /** Stops all hosts at the same time. Settles when none is left. @throws the error of a host that did not stop in order. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    const stops = await Promise.allSettled(this.#slots.map(({ handle }) => handle.stop()));
    const failure = stops.find((stop) => stop.status === 'rejected');
    if (failure) throw failure.reason;
  }

  async #open(name: string): Promise<void> {
    const slot: Slot = { name, handle: this.#supervision.launch(name), status: 'starting', why: null };
    this.#slots.push(slot);
    Object.assign(slot, { status: 'serving', hostId: await slot.handle.ready });
  }

  /** Follows one host through its restarts. */
  async #watch(slot: Slot): Promise<void> {
    const { signal } = this.#stopping;
    const budget = new RestartBudget();
    let sinceMs = this.#nowMs();
    for (;;) {
      const why = await this.#endOf(slot.handle);
      if (why === null || signal.aborted) return;
      let left = budget.take(this.#nowMs() - sinceMs);
      for (let reason = why; ; left = budget.take(0)) {
        if (left === null) return this.#fail(new SessionHostEndedError(slot.name, reason));
        Object.assign(slot, { status: 'pausing', why: reason });
        this.#supervision.onRestart({ host: slot.name, why: reason, ...left });
        await this.#pause(left.pauseMs, signal).catch(() => undefined);
        if (signal.aborted) return;
        const handle = this.#supervision.launch(slot.name);
        Object.assign(slot, { status: 'starting', handle, why: reason });
        const started = await handle.ready.catch((error: Error) => error);
        if (signal.aborted) return;
        if (typeof started === 'string') {
          Object.assign(slot, { status: 'serving', hostId: started });
          break;
        }
        reason = started.message;
        // It may have failed without having ended yet: two hosts of one name would mislead readers of logs.
        await handle.stop().catch(() => undefined);
      }
      sinceMs = this.#nowMs();
    }
  }

  /** How a host that serves has ended; null if it reported a failure of the bus, which ends the service. */
  async #endOf({ ended, failed }: HostHandle): Promise<string | null> {
    const end = await Promise.race([ended, failed]);
    if (typeof end === 'string') return end;
    this.#fail(end);
    return null;
  }

  #restarting(): string {
    return this.#slots
      .flatMap((slot) => {
        if (slot.status === 'serving') return [];
        return [`${slot.name} restarts${slot.why === null ? '' : ` after: ${slot.why}`}`];
      })
      .join(', ');
  }
}
