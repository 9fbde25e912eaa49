/**
 * A host's estimate of the store's clock: the host's monotonic clock plus a measured offset.
 *
 * Hosts share sessions, and their wall clocks differ. Durable timers fire on the store's clock, and records carry the
 * store's time, whichever host writes them. So sessions read no wall clock of a host. A wrong wall clock, or one that
 * is set during a run, changes no timer and no budget.
 *
 * K1  Each measurement bounds the offset: the store read its clock between the request and the answer.
 * K2  Measurements that agree narrow the bounds, and the bounds widen by {@link DRIFT} between measurements. The offset
 *     in use moves only as far as the bounds require. So a slow answer does not make a known offset worse.
 * K3  A measurement that contradicts the bounds replaces them. Causes: the store's clock was set, the stream has
 *     another leader, or this machine was suspended.
 */
import type { Clock, Log } from '@coxswain/ports';

/** Number of measurements in {@link StoreClock.start}. */
const FIRST_MEASUREMENTS = 3;
/** Milliseconds between two measurements: a step of the store's clock is noticed after about this time. */
const MEASURE_EVERY_MS = 5_000;
/** How fast two clocks may drift apart, as a fraction: 500 ppm, the most that NTP corrects. */
const DRIFT = 0.0005;
/** Stores report whole milliseconds, rounded down. */
const RESOLUTION_MS = 1;
/**
 * If the host's wall clock and monotonic clock diverge by more than this, the wall clock was set or the machine was
 * suspended. Milliseconds.
 */
const APART_MAX_MS = 1_000;
/** A difference or a step of more than this is logged, milliseconds. */
const LOGGED_FROM_MS = 1_000;

/** Bounds of the offset (store time minus this host's monotonic time), milliseconds, measured at `atMs` (monotonic). */
interface Bounds {
  readonly lowMs: number;
  readonly highMs: number;
  readonly atMs: number;
}

interface Offset extends Bounds {
  /** The offset in use, between the bounds. */
  readonly usedMs: number;
}

/** A clock that shows the store's time. Call {@link StoreClock.start} before the first {@link StoreClock.nowMs}. */
export class StoreClock implements Clock {
  readonly #own: Clock;
  readonly #storeMs: () => Promise<number>;
  readonly #log: Log;
  readonly #closed = new AbortController();
  #offset: Offset | null = null;
  /** Wall clock minus monotonic clock of the host at the latest measurement, also a failed one, milliseconds. */
  #apartMs = 0;
  #wake: () => void = () => undefined;

  /**
   * @param own the host's clocks. The wall clock shows that it was set or that the machine was suspended, and is
   *   compared with the store's clock for the log.
   * @param storeMs reads the store's time, milliseconds since 1970. It may reject.
   */
  constructor(own: Clock, storeMs: () => Promise<number>, log: Log) {
    this.#own = own;
    this.#storeMs = storeMs;
    this.#log = log;
  }

  /** Measures the offset, then repeats it at intervals until {@link close}. @throws the errors of `storeMs`. */
  async start(): Promise<void> {
    for (let i = 0; i < FIRST_MEASUREMENTS; i++) await this.#measure();
    const aheadMs = Math.round(this.#own.nowMs() - this.nowMs());
    if (Math.abs(aheadMs) >= LOGGED_FROM_MS)
      this.#log.warn({ ahead_ms: aheadMs }, "this machine's clock differs from the store's; sessions use the store's");
    // It handles its own errors, and ends with `close`.
    void this.#keepMeasuring();
  }

  /** Ends the measurements. The clock keeps the last offset. */
  close(): void {
    this.#closed.abort();
    this.#wake();
  }

  /**
   * The store's time, whole milliseconds since 1970. It may go back by as much as a measurement corrects.
   * @throws Error before the first measurement.
   */
  nowMs(): number {
    if (!this.#offset) throw new Error('the clock of the store was read before it was measured');
    if (Math.abs(this.#readApartMs() - this.#apartMs) > APART_MAX_MS) this.#wake();
    return Math.round(this.#own.monotonicMs() + this.#offset.usedMs);
  }

  monotonicMs(): number {
    return this.#own.monotonicMs();
  }

  sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    return this.#own.sleep(delayMs, signal);
  }

  yield(): Promise<void> {
    return this.#own.yield();
  }

  #readApartMs(): number {
    return this.#own.nowMs() - this.#own.monotonicMs();
  }

  async #keepMeasuring(): Promise<void> {
    while (!this.#closed.signal.aborted) {
      const early = new AbortController();
      this.#wake = () => early.abort();
      await this.#own.sleep(MEASURE_EVERY_MS, early.signal);
      // During a measurement, and until the next pause, reading the clock requests no further measurement.
      this.#wake = () => undefined;
      if (this.#closed.signal.aborted) return;
      try {
        await this.#measure();
      } catch (error) {
        // Keep the known offset. An unreachable store fires no timer either.
        this.#apartMs = this.#readApartMs();
        this.#log.debug({ error: (error as Error).message }, "the store's clock could not be read; it is read again");
      }
    }
  }

  async #measure(): Promise<void> {
    const sentMs = this.#own.monotonicMs();
    const storeMs = await this.#storeMs();
    const atMs = this.#own.monotonicMs();
    this.#apartMs = this.#readApartMs();
    // K1
    this.#take({ lowMs: storeMs - atMs, highMs: storeMs + RESOLUTION_MS - sentMs, atMs });
  }

  #take(measured: Bounds): void {
    const known = this.#offset;
    const middleMs = (measured.lowMs + measured.highMs) / 2;
    this.#offset = { ...measured, usedMs: middleMs };
    if (!known) return;
    // K2
    const driftMs = DRIFT * (measured.atMs - known.atMs);
    const lowMs = Math.max(known.lowMs - driftMs, measured.lowMs);
    const highMs = Math.min(known.highMs + driftMs, measured.highMs);
    if (lowMs <= highMs) {
      this.#offset = { lowMs, highMs, atMs: measured.atMs, usedMs: Math.min(Math.max(known.usedMs, lowMs), highMs) };
      return;
    }
    // K3
    const stepMs = Math.round(middleMs - known.usedMs);
    if (Math.abs(stepMs) >= LOGGED_FROM_MS)
      this.#log.warn({ step_ms: stepMs }, "the store's clock has moved against this machine's; sessions follow it");
  }
}
