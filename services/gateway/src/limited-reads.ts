/** Reads that cost much, so many at once and no more. */
import { Problem } from './problem.ts';

/** Slots that reads take. */
export class LimitedReads {
  #free: number;
  readonly #waiting: (() => void)[] = [];
  readonly #waitingMax: number;

  constructor(atOnce: number, waitingMax: number) {
    this.#free = atOnce;
    this.#waitingMax = waitingMax;
  }

  /** Runs a read once there is room. @throws Problem `gateway_busy` where too many wait already. */
  async run<T>(read: () => Promise<T>): Promise<T> {
    const release = await this.acquire();
    try {
      return await read();
    } finally {
      release();
    }
  }

  /** Takes a slot once there is one. @returns what gives it back, to be called once. */
  async acquire(): Promise<() => void> {
    if (this.#free > 0) this.#free--;
    else {
      if (this.#waiting.length >= this.#waitingMax)
        throw new Problem('gateway_busy', 'too much is being read at once', { headers: { 'retry-after': '1' } });
      // Whoever gives a slot back hands it on.
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free++;
    };
  }
}
