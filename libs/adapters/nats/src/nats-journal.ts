/** The journal port on JetStream streams: one subject per session, one message per record. */
import {
  answerOf,
  createStreamReader,
  isWrongSequence,
  NatsUnavailableError,
  type PublishAck,
  type StoredMessage,
  type StreamReader,
  wireOf,
} from '@coxswain/bus';
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

/**
 * Timeout of an append, milliseconds. It is short because a retry is safe: the fencing token rejects a second copy.
 * After the stream has lost its leader, a retry succeeds as soon as there is a new one.
 */
const appendTimeoutMs = 2_000;
/** Maximum records per request while a journal is read. */
const readBatch = 256;

/** Creates the journal port on this connection. Appends of different sessions run concurrently. */
export function createNatsJournal(nc: NatsConnection): Journal {
  const appends = wireOf(nc, appendTimeoutMs);
  const readerOf = journalReaders(nc);
  return {
    async append(ref, bytes, fence) {
      if (bytes.length > BOUNDS.recordMaxBytes) throw new RecordTooLargeError(bytes.length);
      if (nc.isClosed()) throw new NatsUnavailableError('the connection is closed');
      // No Nats-Msg-Id: with one, a cluster may answer "duplicate" for different content, which looks like success.
      let answer: PublishAck;
      try {
        answer = answerOf<PublishAck>(await appends.request(subjects.journal(ref), bytes, new FenceHeader(fence)));
      } catch (error) {
        if (!(error instanceof NatsUnavailableError)) throw error;
        return { status: 'ambiguous', cause: error.message };
      }
      const { error, seq } = answer;
      if (!error && seq !== undefined) return { status: 'stored', fence: seq };
      if (error && isWrongSequence(error)) return { status: 'refused' };
      // Includes a cluster's error "an append to this subject is in flight": that may be this record, sent earlier.
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

/** The header of an append. The library would build a map and a text of it first, 2 % of the CPU time of a step. */
class FenceHeader extends MsgHdrsImpl {
  readonly #fence: number;

  constructor(fence: number) {
    super();
    this.#fence = fence;
  }

  override encode(): Uint8Array {
    return Buffer.from(`NATS/1.0\r\nNats-Expected-Last-Subject-Sequence: ${this.#fence}\r\n\r\n`, 'latin1');
  }
}

/** Creates a reader per journal stream. @returns a function that selects the reader of a session's journal. */
export function journalReaders(nc: NatsConnection): (ref: SessionRef) => StreamReader {
  const wire = wireOf(nc);
  const readers = new Map(
    JOURNAL_STREAMS.map((name): [string, StreamReader] => [name, createStreamReader(wire, name)]),
  );
  return ({ sessionId }) => readers.get(journalStreamOf(sessionId)) as StreamReader;
}

/**
 * Reads the records after `fence`, in order, up to the newest one at the time of the call.
 * @param upTo the sequence of a known record. Reading ends with it, or with the next record if it was deleted.
 * @throws RecordNotServedError if the last record is known to exist, but no replica serves a record up to it.
 */
export async function* readRecords(
  reader: StreamReader,
  ref: SessionRef,
  fence: number,
  upTo?: number,
): AsyncGenerator<StoredRecord, void, undefined> {
  const subject = subjects.journal(ref);
  // Concurrently: most journals fit into the first batch, and the leader reports whether it is complete.
  const newest = async () => upTo ?? (await reader.confirmedLast(subject))?.seq ?? 0;
  const [end, first] = await Promise.all([newest(), reader.batch(subject, fence + 1, readBatch)]);
  let last = fence;
  let batch = first;
  while (last < end) {
    // Records after `end` were appended since the call, or a damaged replica skipped the record at `end`.
    if (upTo === undefined) batch = batch.filter(({ seq }) => seq <= end);
    // An empty batch: the replica lags behind or is damaged. Ask the leader, then the other replicas.
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
 * Reads the next record at or before `end`. If the journal was purged meanwhile, it returns the tombstone, whose
 * sequence is higher than `end`.
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

/** Converts a message of the journal to a record. */
export function recordOf(message: StoredMessage): StoredRecord {
  return { bytes: message.data, fence: message.seq };
}
