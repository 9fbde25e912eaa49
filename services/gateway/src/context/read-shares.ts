import type { Principal } from '../auth/mod.ts';
import { GATEWAY_BOUNDS } from './gateway-bounds.ts';
import { LimitedReads } from './limited-reads.ts';

type Holder = Pick<Principal, 'tenant' | 'name'>;

/** Maximum numbers of concurrent reads of one kind, and of further ones that wait. A tenant has half of `all`. */
export interface ReadBounds {
  readonly all: number;
  /** Default: as many as a tenant. */
  readonly perPrincipal?: number;
  readonly waiting?: number;
  /** Maximum time in the queue, in milliseconds. */
  readonly waitsMs?: number;
}

/**
 * Reads with limited concurrency, in total, for each tenant and for each principal: a tenant whose reads take long
 * cannot occupy the slots of all.
 */
export class ReadShares {
  readonly #perTenant: number;
  readonly #perPrincipal: number;
  readonly #waiting: number;
  readonly #waitsMs: number;
  readonly #all: LimitedReads;
  /** The slots of each tenant and of each principal (`TENANT/NAME`) with a read. */
  readonly #byHolder = new Map<string, LimitedReads>();

  constructor({
    all,
    perPrincipal,
    waiting = GATEWAY_BOUNDS.readsWaitingMax,
    waitsMs = GATEWAY_BOUNDS.readWaitsMs,
  }: ReadBounds) {
    this.#perTenant = Math.ceil(all / 2);
    this.#perPrincipal = perPrincipal ?? this.#perTenant;
    this.#waiting = waiting;
    this.#waitsMs = waitsMs;
    this.#all = new LimitedReads(all, waiting);
  }

  /**
   * Runs a read when a slot is free.
   * @param signal ends the wait for a slot. It does not end a read that has started.
   * @throws as {@link acquire}; errors of the read.
   */
  async run<T>(holder: Holder, read: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const release = await this.acquire(holder, signal);
    try {
      return await read();
    } finally {
      release();
    }
  }

  /**
   * Acquires a slot, after a wait if none is free.
   * @param signal ends the wait.
   * @returns a function that releases the slot, to be called once.
   * @throws Problem `gateway_busy` (503) if too many reads wait, or no slot was free in time; the signal's reason.
   */
  async acquire({ tenant, name }: Holder, signal?: AbortSignal): Promise<() => void> {
    signal?.throwIfAborted();
    const untilMs = performance.now() + this.#waitsMs;
    const releases: (() => void)[] = [];
    const releaseAll = () => {
      for (const release of releases.reverse()) release();
    };
    try {
      releases.push(await this.#acquireOf(`${tenant}/${name}`, this.#perPrincipal, signal, untilMs));
      releases.push(await this.#acquireOf(tenant, this.#perTenant, signal, untilMs));
      releases.push(await this.#all.acquire(signal, untilMs));
      return releaseAll;
    } catch (error) {
      releaseAll();
      throw error;
    }
  }

  async #acquireOf(
    holder: string,
    atOnce: number,
    signal: AbortSignal | undefined,
    untilMs: number,
  ): Promise<() => void> {
    const slots = this.#byHolder.get(holder) ?? new LimitedReads(atOnce, this.#waiting);
    this.#byHolder.set(holder, slots);
    const release = await slots.acquire(signal, untilMs);
    return () => {
      release();
      if (slots.isIdle) this.#byHolder.delete(holder);
    };
  }
}
