/**
 * The queue of an instance's steps. A fixed number runs at once, and the others wait in order. When the instance stops,
 * waiting steps go to other instances.
 */
export class StepLine {
  readonly #atOnce: number;
  readonly #waiting = new Map<object, (entered: boolean) => void>();
  #running = 0;
  #closed = false;

  constructor(atOnce: number) {
    this.#atOnce = atOnce;
  }

  /** Resolves with true when the step may run, until {@link leave}; with false if another instance must run it. */
  enter(signal: AbortSignal): Promise<boolean> {
    if (this.#closed || signal.aborted) return Promise.resolve(false);
    if (this.#running < this.#atOnce) {
      this.#running++;
      return Promise.resolve(true);
    }
    return new Promise((resolve) => {
      const place = {};
      const aborted = () => {
        this.#waiting.delete(place);
        resolve(false);
      };
      this.#waiting.set(place, (entered) => {
        this.#waiting.delete(place);
        signal.removeEventListener('abort', aborted);
        resolve(entered);
      });
      signal.addEventListener('abort', aborted, { once: true });
    });
  }

  /** Ends a step: the next one may run. */
  leave(): void {
    const [next] = this.#waiting.values();
    if (next) next(true);
    else this.#running--;
  }

  /** Resolves waiting and later callers with false, so that other instances run their steps. */
  close(): void {
    this.#closed = true;
    for (const tell of [...this.#waiting.values()]) tell(false);
  }
}
