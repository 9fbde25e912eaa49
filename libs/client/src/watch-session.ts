/** The records, deltas and connection changes of one session as one sequence. */
import { onConnectionChange } from '@coxswain/bus';
import type { AnswerPieces, AnswerPlace, Delta, JournalRecord, SessionRef } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { AnswerHealer } from './heal-answers.ts';
import { onDeltas } from './live-deltas.ts';
import { queryAnswer } from './query-answer.ts';
import { followJournal } from './read-journal.ts';
import type { JournalStart, WatchItem } from './transport.ts';

/**
 * The maximum number of deltas that wait for a slow reader. The oldest are dropped first; the reader fills the gap
 * later.
 */
const DELTAS_WAITING_MAX = 4_096;

/** The source of one session. */
export interface WatchedSession {
  /** The session's records from a start on, then live. Ends when the signal aborts. */
  records(signal: AbortSignal): AsyncGenerator<{ readonly record: JournalRecord }, void, undefined>;
  /** Calls back for each delta. @returns a function that removes the listener. */
  onDeltas(handle: (delta: Delta) => void): () => void;
  /** Calls back when the connection is lost and when it is restored. @returns a function that removes the listener. */
  onConnectionChange(handle: (connected: boolean) => void): () => void;
  /** The text of the newest answer after a position; null if it is unknown. Contract: does not reject. */
  answer(from: AnswerPlace | null): Promise<AnswerPieces | null>;
}

/** {@link watchRecords} for a session on NATS, from `from` on or from the newest record. */
export function watchSession(
  nc: NatsConnection,
  ref: SessionRef,
  from: JournalStart = 1,
  signal?: AbortSignal,
): AsyncGenerator<WatchItem, void, undefined> {
  const session: WatchedSession = {
    records: (stop) => followJournal(nc, ref, from, stop),
    onDeltas: (handle) => onDeltas(nc, ref, handle),
    onConnectionChange: (handle) => onConnectionChange(nc, { lost: () => handle(false), restored: () => handle(true) }),
    answer: (place) => queryAnswer(nc, ref, place),
  };
  return watchRecords(session, signal);
}

/**
 * Records with deltas in between. The deltas of an answer are dense from its first character on, whenever the reader
 * joins. Ends when the signal aborts or the caller stops.
 */
export async function* watchRecords(
  session: WatchedSession,
  signal?: AbortSignal,
): AsyncGenerator<WatchItem, void, undefined> {
  const waiting: Delta[] = [];
  /** At most the text so far of one answer, which its host bounds, and changes of the connection. */
  const ready: WatchItem[] = [];
  let wake: () => void = () => undefined;
  const healer = new AnswerHealer({
    ask: (place) => session.answer(place),
    deliver(delta) {
      ready.push({ delta });
      wake();
    },
  });
  // Subscribed before the journal is read: deltas that arrive meanwhile wait, also for a session that does not exist
  // yet.
  const stopDeltas = session.onDeltas((delta) => {
    waiting.push(delta);
    if (waiting.length > DELTAS_WAITING_MAX) waiting.shift();
    wake();
  });
  const stopStatus = session.onConnectionChange((connected) => {
    ready.push({ connected });
    // Deltas from the time without a connection are not sent again.
    if (connected) healer.join();
    wake();
  });
  healer.join();
  // The source ends at once when the reader stops: the next record may never come.
  const left = new AbortController();
  const records = session.records(signal ? AbortSignal.any([signal, left.signal]) : left.signal);
  try {
    let next = settling(records.next());
    for (;;) {
      if (!next.settled && waiting.length === 0 && ready.length === 0) {
        const cameElse = new Promise<void>((resolve) => {
          wake = resolve;
        });
        await Promise.race([next.promise, cameElse]);
      }
      // Records first: they are authoritative, and deltas only run ahead of them.
      if (next.settled) {
        const { done, value } = await next.promise;
        if (done) return;
        const { record } = value;
        if (record.input.type === 'model_outcome') healer.ended(record.input.effect_id);
        yield { record };
        next = settling(records.next());
        continue;
      }
      const item = ready.shift();
      if (item !== undefined) yield item;
      else {
        const delta = waiting.shift();
        if (delta !== undefined) healer.take(delta);
      }
    }
  } finally {
    stopDeltas();
    stopStatus();
    healer.close();
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
