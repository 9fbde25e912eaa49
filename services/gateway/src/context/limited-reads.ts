/** Reads with limited concurrency. */
import { busyProblem } from './problem.ts';

/** A semaphore for reads, with a bounded queue. */
export class LimitedReads {
  #free: number;
  readonly #atOnce: number;
  readonly #waiting = new Set<() => void>();
  readonly #waitingMax: number;

  /** @param waitingMax length of the queue. */
  constructor(atOnce: number, waitingMax: number) {
    this.#free = atOnce;
    this.#atOnce = atOnce;
    this.#waitingMax = waitingMax;
  }

  /** Whether all slots are free. */
  get isIdle(): boolean {
    return this.#free === this.#atOnce;
  }

  /**
   * Acquires a slot, after a wait if none is free.
   * @param signal ends the wait.
   * @param untilMs end of the wait, on the clock of `performance.now()`.
   * @returns a function that releases the slot; further calls change nothing.
   * @throws Problem `gateway_busy` (503) if the queue is full, or no slot was free in time; the signal's reason.
   */
  async acquire(signal: AbortSignal | undefined, untilMs: number): Promise<() => void> {
    signal?.throwIfAborted();
    if (this.#free > 0) this.#free--;
    else {
      if (this.#waiting.size >= this.#waitingMax) throw busyProblem(TOO_MANY);
      await this.#waitForSlot(signal, untilMs);
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

  /** Resolves when another read releases its slot to this one. */
  #waitForSlot(signal: AbortSignal | undefined, untilMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const take = () => {
        removeWaiter();
        resolve();
      };
      const abort = () => {
        removeWaiter();
        reject(signal?.reason as Error);
      };
      const late = setTimeout(() => {
        removeWaiter();
        reject(busyProblem(TOO_MANY));
      }, untilMs - performance.now());
      const removeWaiter = () => {
        clearTimeout(late);
        this.#waiting.delete(take);
        signal?.removeEventListener('abort', abort);
      };
      // First in, first out.
      this.#waiting.add(take);
      signal?.addEventListener('abort', abort);
    });
  }
}

const TOO_MANY = 'too many concurrent reads';
