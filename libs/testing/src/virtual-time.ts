/**
 * Virtual time: a clock that only a test advances. One queue contains all waits, ordered by time and then by arrival.
 * So the same program always runs in the same order.
 */
import type { Clock } from '@coxswain/ports';

interface Entry {
  readonly atMs: number;
  readonly order: number;
  readonly owner: string;
  readonly wake: () => void;
}

/** 2030-01-01: far from any real time, so that accidental use of the system clock is visible. */
export const BEGINNING_MS = Date.UTC(2030, 0, 1);

/** A queue of timers. Each timer belongs to an owner, and an owner can be stopped or held. */
export class VirtualTime {
  #nowMs = BEGINNING_MS;
  #order = 0;
  // Latest first, so that the next entry is at the end.
  readonly #entries: Entry[] = [];
  /** Called after each wake-up, once all consequences that need no waiting have happened. */
  afterWake: (owner: string) => void = () => {};
  readonly #dead = new Set<string>();
  readonly #heldUntilMs = new Map<string, number>();
  readonly #drained: () => Promise<void>;

  /**
   * @param drained resolves once all work that needs no time has happened. On a memory bus one turn of the event loop
   *   is enough.
   */
  constructor(drained: () => Promise<void> = oneTurn) {
    this.#drained = drained;
  }

  /** Milliseconds since 1970. */
  get nowMs(): number {
    return this.#nowMs;
  }

  /** Milliseconds since the start of the test. */
  get elapsedMs(): number {
    return this.#nowMs - BEGINNING_MS;
  }

  /** The clock of one owner, such as a host or the bus. */
  clock(owner = 'world'): Clock {
    return {
      nowMs: () => this.#nowMs,
      monotonicMs: () => this.elapsedMs,
      sleep: (delayMs, signal) => this.#sleep(owner, delayMs, signal),
      yield: () => this.#sleep(owner, 0),
    };
  }

  /**
   * Removes all timers of this owner, now and in the future. This simulates a process that is killed between two
   * awaits.
   */
  kill(owner: string): void {
    this.#dead.add(owner);
    for (let i = this.#entries.length - 1; i >= 0; i--)
      if (this.#entries[i]?.owner === owner) this.#entries.splice(i, 1);
  }

  /** Delays all timers of this owner until the given time. This simulates a process that is suspended and continues. */
  hold(owner: string, untilMs: number): void {
    this.#heldUntilMs.set(owner, untilMs);
    const held = this.#entries.filter((entry) => entry.owner === owner && entry.atMs < untilMs).reverse();
    for (const entry of held) {
      this.#entries.splice(this.#entries.indexOf(entry), 1);
      this.#insert({ ...entry, atMs: untilMs, order: this.#order++ });
    }
  }

  /** Runs all work that needs no time to pass. */
  async settle(): Promise<void> {
    await this.advance(0);
  }

  /** Advances the time, and runs all timers that are due meanwhile. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms;
    await this.#drained();
    while ((this.#entries.at(-1)?.atMs ?? Number.POSITIVE_INFINITY) <= untilMs) await this.#runNext();
    this.#nowMs = untilMs;
  }

  /**
   * Advances the time without running due timers. They run late, at the next advance, as after a suspension of the
   * machine.
   */
  leap(ms: number): void {
    this.#nowMs += ms;
  }

  /** Advances the time until the condition holds. @returns whether it held within the time. */
  async until(holds: () => boolean, withinMs = 60_000): Promise<boolean> {
    const untilMs = this.#nowMs + withinMs;
    await this.#drained();
    while (!holds()) {
      const next = this.#entries.at(-1);
      if (!next || next.atMs > untilMs) {
        this.#nowMs = untilMs;
        return false;
      }
      await this.#runNext();
    }
    return true;
  }

  async #runNext(): Promise<void> {
    const next = this.#entries.pop() as Entry;
    this.#nowMs = Math.max(this.#nowMs, next.atMs);
    next.wake();
    await this.#drained();
    this.afterWake(next.owner);
  }

  #sleep(owner: string, delayMs: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return Promise.resolve();
    // A timer of a killed owner never ends.
    if (this.#dead.has(owner)) return new Promise(() => {});
    return new Promise((resolve) => {
      const wake = () => {
        signal?.removeEventListener('abort', cut);
        resolve();
      };
      const dueMs = Math.max(this.#nowMs + Math.max(0, delayMs), this.#heldUntilMs.get(owner) ?? 0);
      const entry = { atMs: dueMs, order: this.#order++, owner, wake };
      const cut = () => {
        const place = this.#entries.indexOf(entry);
        if (place < 0) return;
        this.#entries.splice(place, 1);
        resolve();
      };
      signal?.addEventListener('abort', cut, { once: true });
      this.#insert(entry);
    });
  }

  #insert(entry: Entry): void {
    let low = 0;
    let high = this.#entries.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const other = this.#entries[middle] as Entry;
      if (other.atMs > entry.atMs || (other.atMs === entry.atMs && other.order > entry.order)) low = middle + 1;
      else high = middle;
    }
    this.#entries.splice(low, 0, entry);
  }
}

// One turn of the real event loop: all promises that can settle without waiting have settled.
function oneTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
