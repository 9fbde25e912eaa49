/** Time and ids as ports, so that a simulation and a replay can hold them. */

/** A clock. */
export interface Clock {
  /**
   * Milliseconds since 1970. Of a session host: the store's time, which is the time of records and timers on every host.
   */
  nowMs(): number;
  /** Milliseconds of a monotonic clock, for durations. */
  monotonicMs(): number;
  /** Resolves after `delayMs`, or at once when the signal aborts; never rejects. */
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>;
  /** Gives the event loop one whole turn, so that no instant model can starve what arrives. */
  yield(): Promise<void>;
}

/** Ids that do not repeat. */
export interface Ids {
  /** A UUIDv7, RFC 9562 section 5.7. */
  next(): string;
}

/** A log that knows levels and fields; pino's shape. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}
