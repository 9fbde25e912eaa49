/** Pauses between attempts: exponential backoff with an upper bound and jitter. */
import { delayAfter } from '@coxswain/protocol';

const BACK_OFF = { firstMs: 100, maxMs: 5_000 };

/** One sequence of attempts. */
export class Pauses {
  #failures = 0;

  /**
   * The next pause, in milliseconds.
   * @param atLeastMs The delay that the server requested, in milliseconds. It is bounded, so that a header cannot delay
   *   a client for hours.
   */
  next(atLeastMs = 0): number {
    const delayMs = delayAfter(++this.#failures, BACK_OFF) * (0.5 + Math.random() / 2);
    return Math.max(delayMs, Math.min(atLeastMs, BACK_OFF.maxMs));
  }

  /** Starts again with the shortest pause, after a success. */
  reset(): void {
    this.#failures = 0;
  }
}

/** Resolves after the time, or as soon as the signal aborts. */
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
