/** One process that serves tools, personas or hooks, and what a host can hear of it. */
import type { RunningWork, ServedAddress, WorkClock } from '@coxswain/bus';
import type { Clock } from '@coxswain/ports';
import { SERVED_LIVENESS, type ServedKind } from '@coxswain/protocol';

/** A service of a process. */
export interface ServedWork {
  readonly at: ServedAddress;
  readonly work: RunningWork;
  /** Called when its process is stopped and takes no more requests. */
  readonly onDraining?: () => void;
}

/** How far an instance is with a request. */
export type Progress = 'requested' | 'held' | 'started';

/** See the top of the file. Times are virtual, in milliseconds since the beginning. */
export interface ServedProcess {
  readonly name: string;
  readonly kind: ServedKind;
  readonly clock: Clock;
  readonly startedMs: number;
  /** When it was killed, or had stopped. */
  diedMs: number | null;
  /** When it stood still, in order. */
  readonly freezes: { readonly fromMs: number; readonly untilMs: number }[];
  state: 'serving' | 'draining' | 'gone';
  /** The requests that it was sent and has not ended, by their keys. */
  readonly open: Map<string, Progress>;
}

/** Whether it runs, and does not stand still. */
export function isAwake(process: ServedProcess, atMs: number): boolean {
  return (process.diedMs ?? Number.POSITIVE_INFINITY) > atMs && !isFrozen(process, atMs);
}

/** Whether it stands still. */
export function isFrozen({ freezes }: ServedProcess, atMs: number): boolean {
  return freezes.some(({ fromMs, untilMs }) => fromMs <= atMs && atMs < untilMs);
}

/** The time of its last heartbeat. */
export function lastBeatMs({ startedMs, diedMs, freezes }: ServedProcess, nowMs: number): number {
  const { heartbeatMs } = SERVED_LIVENESS;
  const beatBefore = (atMs: number) => atMs - ((atMs - startedMs) % heartbeatMs);
  const aliveMs = Math.min(nowMs, diedMs ?? nowMs);
  const frozen = freezes.findLast(({ fromMs }) => fromMs <= aliveMs);
  // A process that goes on sends the heartbeat at once that was due.
  if (frozen && aliveMs < frozen.untilMs) return beatBefore(frozen.fromMs);
  return Math.max(beatBefore(aliveMs), frozen?.untilMs ?? 0);
}

/** A clock as served work uses it. */
export function workClock(clock: Clock): WorkClock {
  return {
    nowMs: () => clock.monotonicMs(),
    after(delayMs, callback) {
      const cancelled = new AbortController();
      void clock.sleep(delayMs, cancelled.signal).then(() => {
        if (!cancelled.signal.aborted) callback();
      });
      return () => cancelled.abort();
    },
  };
}
