/** Ports of time, ids and logs. A simulation or a replay replaces the clock and the ids. */

/** A clock. */
export interface Clock {
  /**
   * Milliseconds since 1970. The clock of a session host returns the store's time, so that records and timers use the
   * same time on every host.
   */
  nowMs(): number;
  /** Milliseconds of a monotonic clock, for durations. */
  monotonicMs(): number;
  /** Resolves after `delayMs` milliseconds, or immediately when the signal aborts. Never rejects. */
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>;
  /**
   * Waits for one full turn of the event loop, so that a model that answers immediately does not starve incoming
   * messages.
   */
  yield(): Promise<void>;
}

/** A source of unique ids. */
export interface Ids {
  /** A UUIDv7, RFC 9562 section 5.7. */
  next(): string;
}

/** A structured log with levels, in the shape of pino. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}
