/** How often an action may run: `burst` times in a row, then once in `everyMs` milliseconds. */
export interface Rate {
  readonly burst: number;
  readonly everyMs: number;
}

/** Runs an action at requests, and limits how often it runs. Requests above the rate share one later run. */
export class RateLimit {
  readonly #action: () => void;
  readonly #rate: Rate;
  /** When all runs so far are paid for: each costs `everyMs`. On the monotonic clock, milliseconds. */
  #paidMs = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(action: () => void, rate: Rate) {
    this.#action = action;
    this.#rate = rate;
  }

  /** Runs the action now, or as soon as the rate permits it. */
  request(): void {
    if (this.#timer !== undefined) return;
    const { burst, everyMs } = this.#rate;
    const nowMs = performance.now();
    const waitMs = this.#paidMs - nowMs - (burst - 1) * everyMs;
    if (waitMs > 0) {
      this.#timer = setTimeout(() => {
        this.#timer = undefined;
        this.request();
      }, waitMs);
      this.#timer.unref();
      return;
    }
    this.#paidMs = Math.max(this.#paidMs, nowMs) + everyMs;
    this.#action();
  }

  /** Drops a run that has not started. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
