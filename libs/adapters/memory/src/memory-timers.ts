/** The timer port in memory. */
import type { Clock, Timers } from '@coxswain/ports';
import { type SessionRef, subjects } from '@coxswain/protocol';
import { createAlarm } from './alarm.ts';

interface Scheduled {
  readonly key: string;
  readonly ref: SessionRef;
  readonly atMs: number;
  readonly payload: Uint8Array;
}

/** Creates timers that call `due` when they are due. `delete` removes a session's timers; `close` stops all timers. */
export function createMemoryTimers(
  clock: Clock,
  due: (ref: SessionRef, payload: Uint8Array) => void,
  assertOpen: () => void,
): Timers & { delete(ref: SessionRef): void; close(): void } {
  const byKey = new Map<string, Scheduled>();
  // Sorted by time; timers of the same time keep the order in which they were scheduled.
  const byTime: Scheduled[] = [];
  const alarm = createAlarm(clock, fire);

  function fire(): void {
    const nowMs = clock.nowMs();
    let first = byTime[0];
    while (first && first.atMs <= nowMs) {
      byTime.shift();
      byKey.delete(first.key);
      due(first.ref, first.payload);
      first = byTime[0];
    }
    if (first) alarm.setBy(first.atMs);
  }

  function place(atMs: number): number {
    let low = 0;
    let high = byTime.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((byTime[middle] as Scheduled).atMs > atMs) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  return {
    async schedule(ref, timerId, atMs, payload) {
      assertOpen();
      const key = subjects.timerSchedule(ref, timerId);
      const before = byKey.get(key);
      if (before) byTime.splice(byTime.indexOf(before), 1);
      const timer: Scheduled = { key, ref, atMs, payload: payload.slice() };
      byKey.set(key, timer);
      byTime.splice(place(atMs), 0, timer);
      alarm.setBy(atMs);
    },
    delete(ref) {
      assertOpen();
      for (const timer of byTime.filter((one) => subjects.journal(one.ref) === subjects.journal(ref))) {
        byTime.splice(byTime.indexOf(timer), 1);
        byKey.delete(timer.key);
      }
    },
    close: () => alarm.stop(),
  };
}
