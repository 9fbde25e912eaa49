import { setTimeout as sleep } from 'node:timers/promises';
import { SceneError } from './testing-errors.ts';

const LOOK_AGAIN_MS = 5;

/**
 * Running functions of the test, whose time the clock of a scene does not know: while one runs, the clock stands still.
 */
export class WorkUnderWay {
  readonly #patienceMs: number;
  readonly #under = new Map<Promise<unknown>, { readonly what: string; readonly sinceMs: number }>();

  /** @param patienceMs how long one piece of work may take, of the machine's time. */
  constructor(patienceMs: number) {
    this.#patienceMs = patienceMs;
  }

  /** Whether something is being done. */
  get any(): boolean {
    return this.#under.size > 0;
  }

  /** Does a piece of work. */
  do<T>(what: string, work: () => Promise<T>): Promise<T> {
    const done = work().finally(() => this.#under.delete(done));
    this.#under.set(done, { what, sinceMs: performance.now() });
    return done;
  }

  /** Resolves when some of it is done, or a moment has gone by. @throws SceneError naming what has taken too long. */
  async some(): Promise<void> {
    const now = performance.now();
    for (const { what, sinceMs } of this.#under.values())
      if (now - sinceMs > this.#patienceMs)
        throw new SceneError(
          `${what} has not finished within ${this.#patienceMs} ms; raise patienceMs in given({ … })`,
        );
    const look = new AbortController();
    // What fails is told to whoever has asked for it.
    const settled = [...this.#under.keys()].map((work) => work.catch(() => undefined));
    await Promise.race([...settled, sleep(LOOK_AGAIN_MS, undefined, { signal: look.signal }).catch(() => undefined)]);
    look.abort();
  }
}
