/** The time of served work. The default is the monotonic clock of the platform; a simulation replaces it. */
export interface WorkClock {
  /** Milliseconds of a monotonic clock. */
  nowMs(): number;
  /**
   * Calls back once after `delayMs` milliseconds. The timer does not keep the process alive.
   * @returns a function that cancels it.
   */
  after(delayMs: number, callback: () => void): () => void;
}

/** The clock of the platform. */
export const SYSTEM_CLOCK: WorkClock = {
  nowMs: () => performance.now(),
  after(delayMs, callback) {
    const timer = setTimeout(callback, delayMs);
    timer.unref();
    return () => clearTimeout(timer);
  },
};
