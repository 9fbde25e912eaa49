/** A clock that runs by itself up to a point: short sleeps end at once and are written down, long ones are held. */
import type { Clock } from '@coxswain/ports';

export class VirtualClock implements Clock {
  /** The short sleeps, in milliseconds. */
  readonly slept: number[] = [];
  readonly #holdsFromMs: number;
  readonly #held = new Set<{ readonly untilMs: number; readonly wake: () => void }>();
  #nowMs = Date.UTC(2030, 0, 1);

  constructor(holdsFromMs = Number.POSITIVE_INFINITY) {
    this.#holdsFromMs = holdsFromMs;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  async sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return;
    if (delayMs < this.#holdsFromMs) {
      this.slept.push(delayMs);
      this.#nowMs += delayMs;
      return;
    }
    await new Promise<void>((resolve) => {
      const held = { untilMs: this.#nowMs + delayMs, wake: resolve };
      this.#held.add(held);
      signal?.addEventListener('abort', () => {
        this.#held.delete(held);
        resolve();
      });
    });
  }

  async yield(): Promise<void> {}

  /** Lets time pass and ends the held sleeps that are over. */
  elapse(ms: number): void {
    this.#nowMs += ms;
    for (const held of this.#held) {
      if (held.untilMs > this.#nowMs) continue;
      this.#held.delete(held);
      held.wake();
    }
  }
}
