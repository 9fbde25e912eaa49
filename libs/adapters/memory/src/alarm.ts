/** A single wake-up timer, set to the earliest due time. */
import type { Clock } from '@coxswain/ports';

/** A wake-up that can be moved to an earlier time and stopped. */
export interface Alarm {
  /** Rings at `atMs`, milliseconds since 1970, unless an earlier time is set already. */
  setBy(atMs: number): void;
  /** Stops the alarm permanently. */
  stop(): void;
}

/**
 * Creates an alarm on a clock. It may ring early: `ring` reads the clock, processes due work and sets the next time.
 * Contract: `ring` does not throw.
 */
export function createAlarm(clock: Clock, ring: () => void): Alarm {
  let pending: { readonly atMs: number; readonly sleep: AbortController } | null = null;
  let stopped = false;
  return {
    setBy(atMs) {
      if (stopped || (pending !== null && pending.atMs <= atMs)) return;
      pending?.sleep.abort();
      const mine = { atMs, sleep: new AbortController() };
      pending = mine;
      // Owned by the alarm: a sleep never rejects, and `stop` ends it.
      void clock.sleep(Math.max(0, atMs - clock.nowMs()), mine.sleep.signal).then(() => {
        if (pending !== mine) return;
        pending = null;
        ring();
      });
    },
    stop() {
      stopped = true;
      pending?.sleep.abort();
      pending = null;
    },
  };
}
