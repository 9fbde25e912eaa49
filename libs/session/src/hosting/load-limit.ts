/**
 * Bounds how many sessions load at a time, in the order of the requests. If a host loaded a thousand notified sessions at
 * once, each would be as late as the last. {@link forEachConcurrent} bounds other work on many sessions or partitions.
 */
import type { Clock } from '@coxswain/ports';

/** The default bound, of loads and other work: enough to keep a store busy that answers within three milliseconds. */
export const CONCURRENCY = 32;

/**
 * How long one load counts against the bound at most, milliseconds. A very long journal, or one that does not answer, then no
 * longer blocks the others.
 */
const COUNTS_FOR_MS = 2_000;

/** Runs loads, with a bound on how many run at a time. A load counts for `COUNTS_FOR_MS` at most. */
export class LoadLimit {
  readonly #clock: Pick<Clock, 'sleep'>;
  #free: number;
  readonly #waiting: (() => void)[] = [];

  /** @param atOnce the bound. */
  constructor(clock: Pick<Clock, 'sleep'>, atOnce = CONCURRENCY) {
    this.#clock = clock;
    this.#free = atOnce;
  }

  /** Runs a load as soon as the bound allows. @returns its result. Rejects with its error. */
  async take<T>(load: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    const loading = load();
    const ended = new AbortController();
    // With a reason: without one, each abort creates an error with a stack trace.
    const end = () => ended.abort('loaded');
    void loading.then(end, end);
    void this.#clock.sleep(COUNTS_FOR_MS, ended.signal).then(() => this.#endOne());
    return loading;
  }

  #endOne(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#free++;
  }
}

/**
 * Runs `one` for all items, by `atOnce` workers. A rejection ends its worker. So a few failures do not stop the other items,
 * and an outage stops them soon: after `atOnce` rejections the remaining items are not run.
 * @throws one of the rejections, after all workers have ended.
 */
export async function forEachConcurrent<T>(
  all: readonly T[],
  one: (item: T) => Promise<void>,
  atOnce = CONCURRENCY,
): Promise<void> {
  const left = all.values();
  const worker = async () => {
    for (const item of left) await one(item);
  };
  const ended = await Promise.allSettled(Array.from({ length: Math.min(atOnce, all.length) }, worker));
  for (const result of ended) if (result.status === 'rejected') throw result.reason;
}
