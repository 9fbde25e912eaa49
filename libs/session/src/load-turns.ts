/**
 * Loads of sessions take turns: so many at a time, in the order in which they are asked for. Were a thousand that a host
 * is rung for loaded at once, each would be as late as the last.
 */
import type { Clock } from '@coxswain/ports';
import { SIDE_BY_SIDE } from './side-by-side.ts';

/** A journal that does not answer, or a very long one, must not keep the others waiting: its turn ends before it, milliseconds. */
const TURN_MAX_MS = 2_000;

/** See the top of the file. */
export class LoadTurns {
  readonly #clock: Pick<Clock, 'sleep'>;
  #free: number;
  readonly #waiting: (() => void)[] = [];

  /** @param atOnce so many at a time. */
  constructor(clock: Pick<Clock, 'sleep'>, atOnce = SIDE_BY_SIDE) {
    this.#clock = clock;
    this.#free = atOnce;
  }

  /** Runs a load when its turn comes. */
  async take<T>(load: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    const loading = load();
    const ended = new AbortController();
    const end = () => ended.abort();
    void loading.then(end, end);
    void this.#clock.sleep(TURN_MAX_MS, ended.signal).then(() => this.#giveOn());
    return loading;
  }

  #giveOn(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#free++;
  }
}
