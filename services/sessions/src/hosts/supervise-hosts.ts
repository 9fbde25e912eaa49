/**
 * Supervises the session hosts of one service.
 *
 * - HOSTS-1 The service starts only if every host starts. The first host starts alone, so that a wrong setting fails
 *   once.
 * - HOSTS-2 A host that ends unexpectedly restarts after a pause. The pause doubles with each consecutive restart.
 * - HOSTS-3 A host that served for a minute gets a new budget of restarts. The service fails when a budget is used up.
 * - HOSTS-4 A failure of the bus that a host reports affects all hosts: the service fails without a restart.
 * - HOSTS-5 A stopping service starts no host. It also stops hosts that are still starting. A stop during the start of
 *   the service ends that start.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type BackOff, delayAfter } from '@coxswain/protocol';

/** A session host, from its launch to its end. */
export interface HostHandle {
  /** Resolves with the host's incarnation when it serves. Rejects if it ends or fails earlier. */
  readonly ready: Promise<string>;
  /** Resolves with the kind of exit when the host has ended: `exit code 1`, `SIGKILL`. Never rejects. */
  readonly ended: Promise<string>;
  /** Resolves with the reason when the host cannot continue on this bus. Never rejects. */
  readonly failed: Promise<Error>;
  /** Resolves with a remark or null. Rejects with the reason if the host is unhealthy, or does not answer in time. */
  health(): Promise<string | null>;
  /** The host's metrics in the Prometheus text format. Rejects if the host does not answer in time. */
  metrics(): Promise<string>;
  /** Stops the host cleanly, within a time limit. Does nothing if it has ended. Rejects if it did not stop cleanly. */
  stop(): Promise<void>;
}

/** Limits of restarts: six in a row, with pauses of 0.5 s to 16 s. */
export const RESTARTS = { inRowMax: 6, firstPauseMs: 500, steadyAfterMs: 60_000 } as const;
const PAUSES: BackOff = { firstMs: RESTARTS.firstPauseMs, maxMs: 16_000 };

/** Counts the restarts of one host. */
export class RestartBudget {
  #inRow = 0;

  /**
   * Uses one restart.
   * @param servedMs time in milliseconds for which the host served before it ended; 0 if it did not start.
   * @returns the number of this consecutive restart, and the pause before it in milliseconds; null if none is left.
   */
  take(servedMs: number): { readonly restart: number; readonly pauseMs: number } | null {
    if (servedMs >= RESTARTS.steadyAfterMs) this.#inRow = 0;
    if (this.#inRow >= RESTARTS.inRowMax) return null;
    this.#inRow += 1;
    return { restart: this.#inRow, pauseMs: delayAfter(this.#inRow, PAUSES) };
  }
}

/** A host has ended unexpectedly, and no restart is left. */
export class SessionHostEndedError extends Error {
  override readonly name = 'SessionHostEndedError';
  readonly code = 'session_host_ended';

  /**
   * @param host name of the host.
   * @param why its last exit, or the reason why it did not start.
   */
  constructor(host: string, why: string) {
    super(`the session host ${host} ended, and ${RESTARTS.inRowMax} restarts in a row failed; the last time: ${why}`);
  }
}

/** An unexpected end before a restart. */
export interface HostRestart {
  /** The name of the host. */
  readonly host: string;
  /** Its exit, or the reason why it did not start. */
  readonly why: string;
  readonly restart: number;
  readonly pauseMs: number;
}

/** Dependencies of the supervisor. */
export interface Supervision {
  /** Names of the hosts, at least one. */
  readonly names: readonly string[];
  launch(name: string): HostHandle;
  /** Called after each unexpected end, before the restart. Must not throw. */
  onRestart(restart: HostRestart): void;
  /** Aborts when the service is to stop. From then on no host starts. */
  readonly stopping?: AbortSignal | undefined;
  /** Milliseconds of a monotonic clock. */
  readonly nowMs?: () => number;
  /** Waits for the given time in milliseconds. Rejects when the signal aborts. */
  readonly pause?: (ms: number, signal: AbortSignal) => Promise<unknown>;
}

type Slot = { readonly name: string; handle: HostHandle } & (
  | { status: 'starting'; why: string | null }
  | { status: 'serving'; hostId: string }
  | { status: 'pausing'; why: string }
);

/** Starts, monitors and restarts hosts until they are stopped. */
export class HostSupervisor {
  /** Resolves with the reason when the service cannot continue. The caller then stops it. */
  readonly failed: Promise<Error>;
  readonly #supervision: Supervision;
  readonly #nowMs: () => number;
  readonly #pause: (ms: number, signal: AbortSignal) => Promise<unknown>;
  readonly #slots: Slot[] = [];
  readonly #stop = new AbortController();
  /** Aborts on {@link stop}, or when the service is to stop. */
  readonly #stopping: AbortSignal;
  #fail: (error: Error) => void = () => undefined;
  #remark: string | null = null;

  private constructor(supervision: Supervision) {
    this.#supervision = supervision;
    const { stopping } = supervision;
    this.#stopping = stopping ? AbortSignal.any([this.#stop.signal, stopping]) : this.#stop.signal;
    this.#nowMs = supervision.nowMs ?? (() => performance.now());
    this.#pause = supervision.pause ?? ((ms, signal) => sleep(ms, undefined, { signal }));
    this.failed = new Promise((resolve) => {
      this.#fail = resolve;
    });
  }

  /**
   * Starts all hosts.
   * @throws the error of the first host that does not start, or the reason of a stop. All hosts are stopped then.
   */
  static async start(supervision: Supervision): Promise<HostSupervisor> {
    const supervisor = new HostSupervisor(supervision);
    const [first, ...others] = supervision.names;
    try {
      await supervisor.#open(first as string);
      await Promise.all(others.map((name) => supervisor.#open(name)));
      supervisor.#stopping.throwIfAborted();
    } catch (error) {
      // Report the first failure only.
      await supervisor.stop().catch(() => undefined);
      throw error;
    }
    for (const slot of supervisor.#slots) void supervisor.#watch(slot);
    return supervisor;
  }

  /** Incarnations of the hosts that are serving. */
  hostIds(): string[] {
    return this.#slots.flatMap((slot) => (slot.status === 'serving' ? [slot.hostId] : []));
  }

  /** Rejects with the reason if no host is serving, or a serving host is unhealthy. */
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

  /** Restarting hosts and the last remark of a host; null without either. Restarting the service would not help. */
  remark(): string | null {
    const parts = [this.#restarting(), this.#remark].filter((part) => part !== null && part !== '');
    return parts.length === 0 ? null : parts.join('; ');
  }

  /** Metrics of all hosts that answer. The series of other hosts have a gap. */
  async metrics(): Promise<string[]> {
    const serving = this.#slots.filter(({ status }) => status === 'serving');
    const texts = await Promise.all(serving.map(({ handle }) => handle.metrics().catch(() => null)));
    return texts.filter((text) => text !== null);
  }

  /**
   * Stops all hosts concurrently. Settles when no host is left.
   * @throws the error of a host that did not stop cleanly.
   */
  async stop(): Promise<void> {
    this.#stop.abort();
    const stops = await Promise.allSettled(this.#slots.map(({ handle }) => handle.stop()));
    const failure = stops.find((stop) => stop.status === 'rejected');
    if (failure) throw failure.reason;
  }

  async #open(name: string): Promise<void> {
    this.#stopping.throwIfAborted();
    const slot: Slot = { name, handle: this.#supervision.launch(name), status: 'starting', why: null };
    this.#slots.push(slot);
    Object.assign(slot, { status: 'serving', hostId: await slot.handle.ready });
  }

  /** Monitors one host through its restarts. */
  async #watch(slot: Slot): Promise<void> {
    const signal = this.#stopping;
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
        // The host may have failed without exiting. Two hosts with the same name would make logs ambiguous.
        await handle.stop().catch(() => undefined);
      }
      sinceMs = this.#nowMs();
    }
  }

  /** The exit of a serving host; null if it reported a failure of the bus, which ends the service. */
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
