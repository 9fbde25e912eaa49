import type { Principal } from '../auth/mod.ts';
import { GATEWAY_BOUNDS } from './gateway-bounds.ts';
import { LimitedReads } from './limited-reads.ts';

/** Maximum numbers of concurrent exports, and of exports that wait, of all principals and of each. A tenant has half of all. */
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
 * own slots, and neither a principal nor a tenant can occupy all of them.
 */
export class ExportSlots {
  readonly #bounds: ExportBounds;
  readonly #all: LimitedReads;
  /** The slots of each tenant and of each principal (`TENANT/NAME`) with an export. */
  readonly #byHolder = new Map<string, LimitedReads>();

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
    const { all, perPrincipal, waiting } = this.#bounds;
    const untilMs = performance.now() + GATEWAY_BOUNDS.readWaitsMs;
    const releases: (() => void)[] = [];
    const releaseAll = () => {
      for (const release of releases.reverse()) release();
    };
    try {
      releases.push(
        await this.#acquireOf(`${tenant}/${name}`, new LimitedReads(perPrincipal, waiting), signal, untilMs),
      );
      releases.push(await this.#acquireOf(tenant, new LimitedReads(all / 2, waiting), signal, untilMs));
      releases.push(await this.#all.acquire(signal, untilMs));
      return releaseAll;
    } catch (error) {
      releaseAll();
      throw error;
    }
  }

  async #acquireOf(
    holder: string,
    empty: LimitedReads,
    signal: AbortSignal | undefined,
    untilMs: number,
  ): Promise<() => void> {
    const slots = this.#byHolder.get(holder) ?? empty;
    this.#byHolder.set(holder, slots);
    const release = await slots.acquire(signal, untilMs);
    return () => {
      release();
      if (slots.isIdle) this.#byHolder.delete(holder);
    };
  }
}
