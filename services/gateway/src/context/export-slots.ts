import type { Principal } from '../auth/mod.ts';
import { GATEWAY_BOUNDS } from './gateway-bounds.ts';
import { LimitedReads } from './limited-reads.ts';

/** Maximum numbers of concurrent exports, and of exports that wait, of all principals and of each. */
export interface ExportBounds {
  readonly all: number;
  readonly perPrincipal: number;
  readonly waiting: number;
}

/** The default limits. */
const EXPORT_BOUNDS: ExportBounds = {
  all: GATEWAY_BOUNDS.exportsMax,
  perPrincipal: GATEWAY_BOUNDS.exportsPerPrincipalMax,
  waiting: GATEWAY_BOUNDS.readsWaitingMax,
};

/**
 * Slots of exports. An export is read at the speed of its client, so it occupies a slot for long: other reads have their
 * own slots, and a principal cannot occupy all of them.
 */
export class ExportSlots {
  readonly #bounds: ExportBounds;
  readonly #all: LimitedReads;
  /** The slots of each principal with an export. */
  readonly #byPrincipal = new Map<string, LimitedReads>();

  constructor(bounds: ExportBounds = EXPORT_BOUNDS) {
    this.#bounds = bounds;
    this.#all = new LimitedReads(bounds.all, bounds.waiting);
  }

  /**
   * Acquires a slot, after a wait if none is free.
   * @param signal ends the wait.
   * @returns a function that releases the slot, to be called once.
   * @throws Problem `gateway_busy` (503) if too many exports wait, or no slot was free in time; the signal's reason.
   */
  async acquire({ tenant, name }: Principal, signal?: AbortSignal): Promise<() => void> {
    signal?.throwIfAborted();
    const key = `${tenant}/${name}`;
    const own = this.#byPrincipal.get(key) ?? new LimitedReads(this.#bounds.perPrincipal, this.#bounds.waiting);
    this.#byPrincipal.set(key, own);
    const untilMs = performance.now() + GATEWAY_BOUNDS.readWaitsMs;
    const releaseOwn = await own.acquire(signal, untilMs);
    const leave = () => {
      releaseOwn();
      if (own.isIdle) this.#byPrincipal.delete(key);
    };
    try {
      const release = await this.#all.acquire(signal, untilMs);
      return () => {
        release();
        leave();
      };
    } catch (error) {
      leave();
      throw error;
    }
  }
}
