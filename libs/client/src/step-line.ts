/**
 * The queue of steps of an instance: a fixed number run at once, the others wait in order, and move elsewhere when it ends.
 */
export class StepLine {
  readonly #atOnce: number;
  readonly #waiting = new Map<object, (entered: boolean) => void>();
  #running = 0;
  #closed = false;

  constructor(atOnce: number) {
    this.#atOnce = atOnce;
  }

  /** Resolves with true when it is this one's turn, which {@link leave} ends; with false where it is to go elsewhere. */
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

  /** Ends a turn: the next one's begins. */
  leave(): void {
    const [next] = this.#waiting.values();
    if (next) next(true);
    else this.#running--;
  }

  /** Rejects waiting and later callers, who then ask another instance. */
  close(): void {
    this.#closed = true;
    for (const tell of [...this.#waiting.values()]) tell(false);
  }
}
