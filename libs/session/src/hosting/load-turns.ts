/**
 * Bounds the number of concurrent loads of sessions, in the order of the requests. If a thousand sessions were loaded
 * at once, each would be as late as the last.
 */
import type { Clock } from '@coxswain/ports';

/** Default number of concurrent loads: enough to keep a store busy that answers in one to three milliseconds. */
export const SIDE_BY_SIDE = 32;

/**
 * Maximum time of one turn, milliseconds: a journal without an answer, or a very long one, must not delay the others.
 */
const TURN_MAX_MS = 2_000;

/** Runs loads with bounded concurrency. */
export class LoadTurns {
  readonly #clock: Pick<Clock, 'sleep'>;
  #free: number;
  readonly #waiting: (() => void)[] = [];

  /** @param atOnce number of concurrent loads. */
  constructor(clock: Pick<Clock, 'sleep'>, atOnce = SIDE_BY_SIDE) {
    this.#clock = clock;
    this.#free = atOnce;
  }

  /** Runs a load in its turn. */
  async take<T>(load: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    const loading = load();
    const ended = new AbortController();
    const end = () => ended.abort();
    void loading.then(end, end);
    void this.#clock.sleep(TURN_MAX_MS, ended.signal).then(() => this.#giveOn());
    return loading;
  }

  #giveOn(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#free++;
  }
}

/**
 * Runs a function for all items, {@link SIDE_BY_SIDE} at a time. Rejects with the first rejection, after all started
 * ones have ended.
 */
export async function sideBySide<T>(all: readonly T[], one: (item: T) => Promise<void>): Promise<void> {
  const left = all.values();
  const worker = async () => {
    for (const item of left) await one(item);
  };
  const ended = await Promise.allSettled(Array.from({ length: Math.min(SIDE_BY_SIDE, all.length) }, worker));
  for (const result of ended) if (result.status === 'rejected') throw result.reason;
}
