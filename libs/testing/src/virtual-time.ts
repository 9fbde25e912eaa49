/**
 * Virtual time: a clock whose hands move only when a test moves them. Everything that waits stands in one queue, ordered
 * by time and then by arrival, so that the same program always runs in the same order.
 */
import type { Clock } from '@coxswain/ports';

interface Entry {
  readonly atMs: number;
  readonly order: number;
  readonly owner: string;
  readonly wake: () => void;
}

/** 2030-01-01: far from any real clock, so that a leak of the system's time shows. */
export const BEGINNING_MS = Date.UTC(2030, 0, 1);

/** A queue of timers. Each timer belongs to an owner, and an owner can be stopped or held. */
export class VirtualTime {
  #nowMs = BEGINNING_MS;
  #order = 0;
  // Latest first, so that the next one is popped off the end.
  readonly #entries: Entry[] = [];
  /** Called after each wake-up, once everything that follows from it without waiting has happened. */
  afterWake: (owner: string) => void = () => {};
  readonly #dead = new Set<string>();
  readonly #heldUntilMs = new Map<string, number>();
  readonly #drained: () => Promise<void>;

  /** @param drained resolves when everything has happened that needs no time: on a bus in memory one turn of the event loop is enough. */
  constructor(drained: () => Promise<void> = oneTurn) {
    this.#drained = drained;
  }

  /** Milliseconds since 1970. */
  get nowMs(): number {
    return this.#nowMs;
  }

  /** Milliseconds since the test began. */
  get elapsedMs(): number {
    return this.#nowMs - BEGINNING_MS;
  }

  /** The clock of one owner: of a host, of the bus. */
  clock(owner = 'world'): Clock {
    return {
      nowMs: () => this.#nowMs,
      monotonicMs: () => this.elapsedMs,
      sleep: (delayMs, signal) => this.#sleep(owner, delayMs, signal),
      yield: () => this.#sleep(owner, 0),
    };
  }

  /** Nothing of this owner ever runs again: a process that was killed between two awaits. */
  kill(owner: string): void {
    this.#dead.add(owner);
    for (let i = this.#entries.length - 1; i >= 0; i--)
      if (this.#entries[i]?.owner === owner) this.#entries.splice(i, 1);
  }

  /** Nothing of this owner runs until then: a process that was stopped and goes on. */
  hold(owner: string, untilMs: number): void {
    this.#heldUntilMs.set(owner, untilMs);
    const held = this.#entries.filter((entry) => entry.owner === owner && entry.atMs < untilMs).reverse();
    for (const entry of held) {
      this.#entries.splice(this.#entries.indexOf(entry), 1);
      this.#insert({ ...entry, atMs: untilMs, order: this.#order++ });
    }
  }

  /** Runs everything that needs no time to pass. */
  async settle(): Promise<void> {
    await this.advance(0);
  }

  /** Lets time pass, and runs everything that is due on the way. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms;
    await this.#drained();
    while ((this.#entries.at(-1)?.atMs ?? Number.POSITIVE_INFINITY) <= untilMs) await this.#runNext();
    this.#nowMs = untilMs;
  }

  /**
   * Moves the time without running due timers. They run at the next advance, and are late as on a machine that was
   * asleep.
   */
  leap(ms: number): void {
    this.#nowMs += ms;
  }

  /** Lets time pass until something holds. @returns whether it held within the time. */
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
    // Whoever is dead never learns that time has passed.
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

// One turn of the real event loop: every promise that can go on by itself has gone on.
function oneTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
