/**
 * Loads of sessions take turns: so many at a time, in the order in which they are asked for. Were a thousand that a host
 * is rung for loaded at once, each would be as late as the last.
 */
import type { Clock } from '@coxswain/ports';

/** So many at a time, where nothing else says otherwise: enough to keep a store busy that answers in a millisecond or three. */
export const SIDE_BY_SIDE = 32;

/** A journal that does not answer, or a very long one, must not keep the others waiting: its turn ends before it, milliseconds. */
const TURN_MAX_MS = 2_000;

/** See the top of the file. */
export class LoadTurns {
  readonly #clock: Pick<Clock, 'sleep'>;
  #free: number;
  readonly #waiting: (() => void)[] = [];

  /** @param atOnce so many at a time. */
  constructor(clock: Pick<Clock, 'sleep'>, atOnce = SIDE_BY_SIDE) {
    this.#clock = clock;
    this.#free = atOnce;
  }

  /** Runs a load when its turn comes. */
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

/** Does this for all, {@link SIDE_BY_SIDE} at a time. Rejects with the first rejection, after all others that had started have ended. */
export async function sideBySide<T>(all: readonly T[], one: (item: T) => Promise<void>): Promise<void> {
  const left = all.values();
  const worker = async () => {
    for (const item of left) await one(item);
  };
  const ended = await Promise.allSettled(Array.from({ length: Math.min(SIDE_BY_SIDE, all.length) }, worker));
  for (const result of ended) if (result.status === 'rejected') throw result.reason;
}
