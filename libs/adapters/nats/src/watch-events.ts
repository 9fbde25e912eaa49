/** A session's journal from one record on, and then live. */
import type { StoredRecord } from '@coxswain/ports';
import { type SessionRef, subjects } from '@coxswain/protocol';
import type { Msg, NatsConnection } from '@nats-io/nats-core';
import { onConnectionChange } from './connection-changes.ts';
import { journalReaders, readRecords, recordOf } from './nats-journal.ts';
import { NatsUnavailableError } from './nats-status.ts';
import type { StreamReader } from './stream-reader.ts';

/** Where to begin, and how to end. */
export interface WatchEventsOptions {
  /** The first record to hand on, by its `n`. Default 1. */
  readonly from?: number | undefined;
  /** Ends the watch when it aborts, also while it waits. */
  readonly signal?: AbortSignal | undefined;
}

/** Live records that wait for a slow reader. Beyond it they are dropped here and read from the journal instead. */
const backlogMax = 1_000;
/** How long a quiet session goes unchecked: the last live record may be the one that was lost on its way. */
const quietCheckMs = 10_000;

/**
 * Hands on the session's records from `from` on, each once and in order, without a gap, and goes on with those that are
 * yet to come. A session without a journal is waited for. Ends when the signal aborts or the reader stops.
 *
 * Live records come republished, without a consumer on the server. Each says which sequence it follows, so one that was
 * lost is noticed, and the journal is read instead.
 * It outlasts a server that goes away and comes back.
 * @throws NatsUnavailableError when the connection is closed, or no journal can be read when it begins; NatsRefusedError.
 */
export async function* watchEvents(
  nc: NatsConnection,
  ref: SessionRef,
  options: WatchEventsOptions = {},
): AsyncGenerator<StoredRecord, void, undefined> {
  const { from = 1, signal } = options;
  const reader = journalReaders(nc)(ref);
  let live: LiveRecord[] = [];
  let behind = true;
  let ended: Error | null = null;
  let wake: () => void = () => undefined;

  // Listening begins before reading, or a record between the two would be missed.
  const subscription = nc.subscribe(subjects.events(ref), {
    callback(error, message) {
      if (error)
        ended = new NatsUnavailableError(`live records cannot be received: ${error.message}`, { cause: error });
      else if (live.length < backlogMax) live.push(liveRecord(message));
      else {
        live = [];
        behind = true;
      }
      wake();
    },
  });
  const missed = () => {
    behind = true;
    wake();
  };
  const endListening = onConnectionChange(nc, { restored: missed });
  // It ends with the connection, or below; then a closed connection must not be waited for.
  void subscription.closed.then(() => {
    ended ??= new NatsUnavailableError('the connection was closed while a session was watched');
    wake();
  });
  const somethingHappens = () =>
    new Promise<void>((resolve) => {
      const timer = setTimeout(missed, quietCheckMs);
      timer.unref();
      wake = () => {
        clearTimeout(timer);
        wake = () => undefined;
        resolve();
      };
    });
  const aborted = () => wake();
  signal?.addEventListener('abort', aborted, { once: true });

  try {
    let fence = from > 1 ? await fenceBefore(reader, ref, from) : 0;
    // A watch may begin at a record that is yet to come; those before it are not for it.
    let early = from > 1;
    const wanted = (record: StoredRecord): boolean => {
      fence = record.fence;
      early &&= numberOf(record) < from;
      return !early;
    };
    while (!signal?.aborted) {
      if (behind) {
        behind = false;
        try {
          for await (const record of readRecords(reader, ref, fence)) {
            if (wanted(record)) yield record;
            if (signal?.aborted) return;
          }
        } catch (error) {
          if (!(error instanceof NatsUnavailableError) || nc.isClosed()) throw error;
          // An outage: the watch goes on where it stands as soon as the server is back.
          behind = true;
          await somethingHappens();
          continue;
        }
      }
      const next = live.shift();
      if (next) {
        if (next.record.fence <= fence) continue;
        if (next.follows !== fence) behind = true;
        else if (wanted(next.record)) yield next.record;
        continue;
      }
      if (behind) continue;
      if (ended) throw ended;
      await somethingHappens();
    }
  } finally {
    subscription.unsubscribe();
    endListening();
    signal?.removeEventListener('abort', aborted);
  }
}

interface LiveRecord {
  readonly record: StoredRecord;
  /** The fence of the record before it. */
  readonly follows: number;
}

function liveRecord(message: Msg): LiveRecord {
  return {
    record: { bytes: message.data, fence: Number(message.headers?.last('Nats-Sequence')) },
    follows: Number(message.headers?.get('Nats-Last-Sequence')),
  };
}

/**
 * The fence of record `n - 1`, or of the newest record where there are fewer. Found by halving, as a long session's
 * whole journal would have to be read otherwise.
 */
async function fenceBefore(reader: StreamReader, ref: SessionRef, n: number): Promise<number> {
  const subject = subjects.journal(ref);
  const newest = await reader.leaderLast(subject);
  const first = newest && (await reader.next(subject, 1));
  if (!newest || !first) return 0;
  if (numberOf(recordOf(newest)) < n) return newest.seq;
  if (numberOf(recordOf(first)) >= n) return 0;
  // Record n - 1 stands at or after `low`, and before `high`.
  let low = first;
  let high = newest.seq;
  while (numberOf(recordOf(low)) < n - 1 && high - low.seq > 1) {
    const middle = low.seq + Math.floor((high - low.seq) / 2);
    const found = await reader.next(subject, middle);
    if (found && numberOf(recordOf(found)) < n) low = found;
    else high = middle;
  }
  return low.seq;
}

function numberOf({ bytes, fence }: StoredRecord): number {
  const record = JSON.parse(Buffer.from(bytes).toString()) as { readonly n?: unknown };
  if (typeof record.n !== 'number') throw new TypeError(`message ${fence} of the journal is not a record`);
  return record.n;
}
