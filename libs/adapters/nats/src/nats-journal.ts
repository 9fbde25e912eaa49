/** The journal port on JetStream streams: one subject per session, one message per record. */
import type { Journal, StoredRecord } from '@coxswain/ports';
import {
  BOUNDS,
  JOURNAL_STREAMS,
  journalStreamOf,
  RecordNotServedError,
  RecordTooLargeError,
  type SessionRef,
  subjects,
  tombstoneIn,
} from '@coxswain/protocol';
import { MsgHdrsImpl, type NatsConnection } from '@nats-io/nats-core';
import { listSessions, sessionsOf } from './list-sessions.ts';
import { answerOf, isWrongSequence, NatsUnavailableError, type PublishAck } from './nats-status.ts';
import { createStreamReader, type StoredMessage, type StreamReader } from './stream-reader.ts';
import { createWire, wireOf } from './wire.ts';

/**
 * An append without an answer is sent again by its writer, at no risk, so it is given up soon: a stream that has lost
 * its leader takes it again as soon as there is a new one.
 */
const appendTimeoutMs = 2_000;
/** Records per request while a journal is read. */
const readBatch = 256;

/** A journal on this connection. Appends of different sessions are under way side by side. */
export function createNatsJournal(nc: NatsConnection): Journal {
  const appends = createWire(nc, appendTimeoutMs);
  const readerOf = journalReaders(nc);
  return {
    async append(ref, bytes, fence) {
      if (bytes.length > BOUNDS.recordMaxBytes) throw new RecordTooLargeError(bytes.length);
      if (nc.isClosed()) throw new NatsUnavailableError('the connection is closed');
      // No Nats-Msg-Id: with one, a cluster may answer "duplicate" for other content, which looks like success.
      const fenced = MsgHdrsImpl.fromRecord({ 'Nats-Expected-Last-Subject-Sequence': [String(fence)] });
      let answer: PublishAck;
      try {
        answer = answerOf<PublishAck>(await appends.request(subjects.journal(ref), bytes, fenced));
      } catch (error) {
        if (!(error instanceof NatsUnavailableError)) throw error;
        return { status: 'ambiguous', cause: error.message };
      }
      const { error, seq } = answer;
      if (!error && seq !== undefined) return { status: 'stored', fence: seq };
      if (error && isWrongSequence(error)) return { status: 'refused' };
      // Also "an append to this subject is in flight" of a cluster: it may be this very record, sent before.
      return { status: 'ambiguous', cause: error ? `${error.description} (${error.err_code})` : 'an empty answer' };
    },
    async firstAfter(ref, fence) {
      const message = await readerOf(ref).leaderNext(subjects.journal(ref), fence + 1);
      return message && recordOf(message);
    },
    read: (ref, fence = 0, upTo) => readRecords(readerOf(ref), ref, fence, upTo),
    async last(ref) {
      const message = await readerOf(ref).confirmedLast(subjects.journal(ref));
      return message && recordOf(message);
    },
    sessionsOf: (partition) => sessionsOf(nc, partition),
    sessions: (tenant) => listSessions(nc, tenant),
  };
}

/** The readers of the journals' streams, each made once: the one that a session's journal is in. */
export function journalReaders(nc: NatsConnection): (ref: SessionRef) => StreamReader {
  const wire = wireOf(nc);
  const readers = new Map(
    JOURNAL_STREAMS.map((name): [string, StreamReader] => [name, createStreamReader(wire, name)]),
  );
  return ({ sessionId }) => readers.get(journalStreamOf(sessionId)) as StreamReader;
}

/**
 * The records after `fence`, in order, up to the newest at the time of the call, or to the one that stands at `upTo`.
 * @throws RecordNotServedError where the newest is known to be there, and no replica serves what leads to it.
 */
export async function* readRecords(
  reader: StreamReader,
  ref: SessionRef,
  fence: number,
  upTo?: number,
): AsyncGenerator<StoredRecord, void, undefined> {
  const subject = subjects.journal(ref);
  // Side by side: most sessions fit the first batch, and the leader says whether that was all.
  const newest = async () => upTo ?? (await reader.confirmedLast(subject))?.seq ?? 0;
  const [end, first] = await Promise.all([newest(), reader.batch(subject, fence + 1, readBatch)]);
  let last = fence;
  let batch = first;
  while (last < end) {
    // What is behind the end was appended since, or a damaged replica has stepped over the end.
    if (upTo === undefined) batch = batch.filter(({ seq }) => seq <= end);
    // A replica that lags behind, or is damaged: the leader has the rest.
    if (batch.length === 0) batch = [await restOf(reader, subject, last + 1, end)];
    for (const message of batch) {
      if (message.seq > end && upTo === undefined) return;
      last = message.seq;
      yield recordOf(message);
      if (last >= end) return;
    }
    batch = await reader.batch(subject, last + 1, readBatch);
  }
}

/**
 * The next record on the way to the one at `end`, or the tombstone of a journal that was purged meanwhile, which is behind it.
 * @throws RecordNotServedError.
 */
async function restOf(reader: StreamReader, subject: string, seq: number, end: number): Promise<StoredMessage> {
  try {
    return await reader.expectedNext(subject, seq, end);
  } catch (error) {
    if (!(error instanceof RecordNotServedError)) throw error;
    const newest = await reader.leaderLast(subject);
    if (newest && newest.seq > end && tombstoneIn(newest.data)) return newest;
    throw error;
  }
}

/** A message of the journal as a record. */
export function recordOf(message: StoredMessage): StoredRecord {
  return { bytes: message.data, fence: message.seq };
}
