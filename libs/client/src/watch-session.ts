/** One session's records and deltas as one sequence, the way a translator takes them. */
import type { Delta, SessionRef } from '@coxswain/protocol';
import { onDeltas } from './live-deltas.ts';
import { followJournal, type JournalBus } from './read-journal.ts';
import type { JournalStart, WatchItem } from './transport.ts';

/** Deltas that wait for a slow reader; beyond it the oldest are dropped, which a translator makes up for. */
const DELTAS_WAITING_MAX = 4_096;

/** Records from `from` on, or from the newest, and then live, with deltas in between. Ends when the signal aborts or the caller stops. */
export async function* watchSession(
  bus: JournalBus,
  ref: SessionRef,
  from: JournalStart = 1,
  signal?: AbortSignal,
): AsyncGenerator<WatchItem, void, undefined> {
  const waiting: Delta[] = [];
  let wake: () => void = () => undefined;
  // Listening begins before reading: what streams while the journal is being read is held back, not missed.
  const stopDeltas = onDeltas(bus.nc, ref, (delta) => {
    waiting.push(delta);
    if (waiting.length > DELTAS_WAITING_MAX) waiting.shift();
    wake();
  });
  // Whoever leaves does so at once, and not with the next record, which may never come.
  const left = new AbortController();
  const records = followJournal(bus, ref, from, signal ? AbortSignal.any([signal, left.signal]) : left.signal);
  try {
    let next = settling(records.next());
    for (;;) {
      if (!next.settled && waiting.length === 0) {
        const deltaCame = new Promise<void>((resolve) => {
          wake = resolve;
        });
        await Promise.race([next.promise, deltaCame]);
      }
      // Records first: they are the truth that deltas only run ahead of.
      if (next.settled) {
        const { done, value } = await next.promise;
        if (done) return;
        yield { record: value.record };
        next = settling(records.next());
      } else {
        const delta = waiting.shift();
        if (delta !== undefined) yield { delta };
      }
    }
  } finally {
    stopDeltas();
    left.abort();
    await records.return();
  }
}

interface Settling<T> {
  readonly promise: Promise<T>;
  settled: boolean;
}

function settling<T>(promise: Promise<T>): Settling<T> {
  const state: Settling<T> = { promise, settled: false };
  const done = () => {
    state.settled = true;
  };
  promise.then(done, done);
  return state;
}
