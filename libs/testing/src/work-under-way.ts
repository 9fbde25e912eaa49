import { setTimeout as sleep } from 'node:timers/promises';
import { SceneError } from './testing-errors.ts';

const LOOK_AGAIN_MS = 5;

/** Running functions of the test. The virtual time cannot measure them, so it does not advance while one runs. */
export class WorkUnderWay {
  readonly #patienceMs: number;
  readonly #under = new Map<Promise<unknown>, { readonly what: string; readonly sinceMs: number }>();

  /** @param patienceMs the time limit of one function, in milliseconds of real time. */
  constructor(patienceMs: number) {
    this.#patienceMs = patienceMs;
  }

  /** Whether a function is running. */
  get any(): boolean {
    return this.#under.size > 0;
  }

  /** Runs a function, and tracks it until it settles. */
  do<T>(what: string, work: () => Promise<T>): Promise<T> {
    const done = work().finally(() => this.#under.delete(done));
    this.#under.set(done, { what, sinceMs: performance.now() });
    return done;
  }

  /**
   * Resolves once one of the functions has settled, or after {@link LOOK_AGAIN_MS}. @throws SceneError naming a
   * function that exceeds the time limit.
   */
  async some(): Promise<void> {
    const now = performance.now();
    for (const { what, sinceMs } of this.#under.values())
      if (now - sinceMs > this.#patienceMs)
        throw new SceneError(
          `${what} has not finished within ${this.#patienceMs} ms; raise patienceMs in given({ … })`,
        );
    const look = new AbortController();
    // The caller of the function gets its error.
    const settled = [...this.#under.keys()].map((work) => work.catch(() => undefined));
    await Promise.race([...settled, sleep(LOOK_AGAIN_MS, undefined, { signal: look.signal }).catch(() => undefined)]);
    look.abort();
  }
}
