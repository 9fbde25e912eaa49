/**
 * The object store as results in commands use it. Such a result is cut for good if its text cannot be stored, so it waits
 * during an outage. The later commands of the session, `cancel` too, wait behind it, so the wait has a bound.
 */
import type { Blobs, Clock, Log } from '@coxswain/ports';
import { isUnavailable } from '../effects/until-answered.ts';

/**
 * How long results wait for the object store, milliseconds: longer than a leader election of a stream, short enough for a
 * person who waits. The last attempt may end later.
 */
const WAIT_MS = 60_000;
/** How long a failed attempt counts for the puts after it, milliseconds: an attempt takes seconds while no server answers. */
const FAILURE_COUNTS_MS = 5_000;

interface Outage {
  /** Start of the first attempt of the outage. Monotonic clock, milliseconds. */
  readonly sinceMs: number;
  /** End of the newest attempt. */
  readonly failedMs: number;
  readonly error: unknown;
}

/** Stores the results of one session, and remembers an outage of the object store. */
export class ResultStore {
  readonly #blobs: Pick<Blobs, 'put'>;
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  readonly #log: Log;
  #outage: Outage | null = null;

  constructor(blobs: Pick<Blobs, 'put'>, clock: Pick<Clock, 'monotonicMs'>, log: Log) {
    this.#blobs = blobs;
    this.#clock = clock;
    this.#log = log;
  }

  /** Whether results that cannot be stored wait; if not, they are cut. */
  get isAwaited(): boolean {
    return this.#outage !== null && this.#clock.monotonicMs() - this.#outage.sinceMs < WAIT_MS;
  }

  /** Stores a blob as `Blobs.put`, with the same errors. Soon after a failed attempt, fails without another one. */
  readonly put: Blobs['put'] = async (sha256, bytes) => {
    const startMs = this.#clock.monotonicMs();
    const sinceFailureMs = this.#outage === null ? Number.POSITIVE_INFINITY : startMs - this.#outage.failedMs;
    if (this.#outage && sinceFailureMs < FAILURE_COUNTS_MS) throw this.#outage.error;
    // Only time ends an outage: a store that takes some blobs of a result and not others would delay the result forever.
    if (sinceFailureMs > WAIT_MS) this.#outage = null;
    try {
      await this.#blobs.put(sha256, bytes);
    } catch (error) {
      if (isUnavailable(error)) this.#noteFailure(startMs, error);
      throw error;
    }
  };

  #noteFailure(startMs: number, error: unknown): void {
    if (this.#outage === null)
      this.#log.warn(
        { error: (error as Error).message },
        `the object store cannot be reached: results wait for ${WAIT_MS / 1_000} s, and are cut then`,
      );
    this.#outage = { sinceMs: this.#outage?.sinceMs ?? startMs, failedMs: this.#clock.monotonicMs(), error };
  }
}
