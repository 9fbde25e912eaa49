/** Pauses between attempts: longer each time up to a bound, and never the same for two who wait for the same thing. */

const FIRST_MS = 100;
const LONGEST_MS = 5_000;

/** One sequence of attempts. */
export class Pauses {
  #next = FIRST_MS;

  /**
   * @param atLeastMs the delay that the server requested, milliseconds. It is bounded, so that a header cannot delay
   *   a client for hours.
   */
  next(atLeastMs = 0): number {
    const pause = this.#next * (0.5 + Math.random() / 2);
    this.#next = Math.min(LONGEST_MS, this.#next * 2);
    return Math.max(pause, Math.min(atLeastMs, LONGEST_MS));
  }

  /** What was waited for has come: the next trouble is another. */
  reset(): void {
    this.#next = FIRST_MS;
  }
}

/** Resolves after so long, or as soon as the signal aborts. */
export function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    if (signal?.aborted) done();
    else signal?.addEventListener('abort', done, { once: true });
  });
}
