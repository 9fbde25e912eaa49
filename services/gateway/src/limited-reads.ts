/** Reads that cost much, so many at once and no more. */
import { Problem } from './problem.ts';

/** Slots that reads take. */
export class LimitedReads {
  #free: number;
  readonly #waiting = new Set<() => void>();
  readonly #waitingMax: number;

  constructor(atOnce: number, waitingMax: number) {
    this.#free = atOnce;
    this.#waitingMax = waitingMax;
  }

  /**
   * Runs a read once there is room.
   * @param signal whoever asked does not wait any more: what has not begun is not begun.
   * @throws Problem `gateway_busy` where too many wait already; the signal's reason.
   */
  async run<T>(read: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const release = await this.acquire(signal);
    try {
      return await read();
    } finally {
      release();
    }
  }

  /** Takes a slot once there is one. @returns what gives it back, to be called once. @throws as {@link run}. */
  async acquire(signal?: AbortSignal): Promise<() => void> {
    signal?.throwIfAborted();
    if (this.#free > 0) this.#free--;
    else {
      if (this.#waiting.size >= this.#waitingMax)
        throw new Problem('gateway_busy', 'too many concurrent reads', { headers: { 'retry-after': '1' } });
      await this.#turn(signal);
    }
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      const [next] = this.#waiting;
      if (next) next();
      else this.#free++;
    };
  }

  /** Resolves when a slot is handed on by whoever gives it back. */
  #turn(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const take = () => {
        leave();
        resolve();
      };
      const give = () => {
        leave();
        reject(signal?.reason as Error);
      };
      const leave = () => {
        this.#waiting.delete(take);
        signal?.removeEventListener('abort', give);
      };
      // In the order in which they came.
      this.#waiting.add(take);
      signal?.addEventListener('abort', give);
    });
  }
}
