/** A clock whose sleeps end at once and are written down. */
import type { Clock } from '@coxswain/ports';

export class VirtualClock implements Clock {
  readonly slept: number[] = [];
  #nowMs = Date.UTC(2030, 0, 1);

  nowMs(): number {
    return this.#nowMs;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  async sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return;
    this.slept.push(delayMs);
    this.#nowMs += delayMs;
  }

  async yield(): Promise<void> {}
}
