/** One pending wake-up, moved to whatever is due first. */
import type { Clock } from '@coxswain/ports';

/** A wake-up that can be moved forward and put off for good. */
export interface Alarm {
  /** Rings at `atMs` at the latest, milliseconds since 1970. An earlier time that was set before stays. */
  setBy(atMs: number): void;
  /** Rings no more. */
  stop(): void;
}

/**
 * An alarm on a clock. It may ring early; `ring` looks at the time, does what is due and sets the next time.
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
