/**
 * Reads one stream by subject and sequence. The server sends each direct get to a replica of its choice. That replica
 * may lag behind, and a damaged one skips messages without an error. So a 404 of a direct get proves nothing. Reads
 * through the leader see all acknowledged messages, unless the leader's own store is damaged. Then its index still
 * reports the messages that it cannot read.
 */
import { RecordNotServedError } from '@coxswain/protocol';
import { type Msg, type MsgHdrs, MsgHdrsImpl } from '@nats-io/nats-core';
import { failureOf, MESSAGE_NOT_FOUND, NatsRefusedError } from './errors.ts';
import { askJetStream } from './jetstream-api.ts';
import { answerOf, STATUS, statusOf, statusText } from './status.ts';
import type { Wire } from './wire.ts';

/** A message of a stream. */
export interface StoredMessage {
  readonly subject: string;
  readonly seq: number;
  /** When the stream stored it, milliseconds since 1970. */
  readonly timeMs: number;
  readonly data: Uint8Array;
  readonly headers: MsgHdrs;
}

/** Reads of one stream. All throw NatsUnavailableError without an answer, and NatsRefusedError for an error. */
export interface StreamReader {
  /** The first message on `subject` (wildcards allowed) at or after `seq`, from any replica; null if it has none. */
  next(subject: string, seq: number): Promise<StoredMessage | null>;
  /** Like {@link StreamReader.next}, through the leader. */
  leaderNext(subject: string, seq: number): Promise<StoredMessage | null>;
  /** The newest message on `subject`, from any replica, or null. For caches: the 404 is not confirmed. */
  last(subject: string): Promise<StoredMessage | null>;
  /** Like {@link StreamReader.last}, through the leader. */
  leaderLast(subject: string): Promise<StoredMessage | null>;
  /**
   * The newest message on `subject` (no wildcards), through the leader. Null only if the leader's index does not report
   * the subject either. If the leader reports a message but cannot read it, another replica serves it.
   * @throws RecordNotServedError if no replica serves it.
   */
  confirmedLast(subject: string): Promise<StoredMessage | null>;
  /**
   * The first message on `subject` from `seq` to `end`. Precondition: a message is known to be there. It is read
   * through the leader, otherwise from another replica.
   * @throws RecordNotServedError if no replica serves it.
   */
  expectedNext(subject: string, seq: number, end: number): Promise<StoredMessage>;
  /**
   * Lists the subjects that the leader's index reports for a filter, page by page.
   */
  subjects(filter: string): AsyncGenerator<string, void, undefined>;
  /**
   * Up to `limit` messages on `subject` at or after `seq`, in order, from any replica. If a replica sends fewer
   * messages than its index reports, the read is repeated, up to {@link BATCH_TRIES} reads in total. A short batch does
   * not prove that there are no more messages, and a message may be missing in between.
   */
  batch(subject: string, seq: number, limit: number): Promise<StoredMessage[]>;
  /**
   * As {@link StreamReader.batch}, for a caller that never returns to an earlier position: no message that the leader
   * serves is missing in between. If the replica may have skipped one, the leader is asked for each gap, at most
   * `limit` times.
   */
  gaplessBatch(subject: string, seq: number, limit: number): Promise<StoredMessage[]>;
}

/** Maximum bytes of one batch. A read holds at most one record more than this in memory. */
const batchMaxBytes = 4 * 1024 * 1024;

/**
 * Maximum direct gets in search of a replica that serves a message. Each goes to a random replica. If two of three
 * replicas are damaged, about one search in 130 misses the intact one, and the caller tries again.
 */
const REPLICA_TRIES = 12;

/** Maximum batches in search of a replica that sends all messages that its index reports. */
const BATCH_TRIES = 4;

/** The result of one batched direct get. */
interface Batch {
  readonly messages: StoredMessage[];
  /** Number of messages that the replica's index reports, but that it did not send. */
  readonly skipped: number;
  /** The batch may have ended at a limit, so skipped messages cannot be counted. */
  readonly isFull: boolean;
}

const text = new TextEncoder();

interface SubjectsAnswer {
  readonly total?: number;
  readonly state?: { readonly subjects?: Readonly<Record<string, number>> };
}

interface LeaderAnswer {
  readonly message?: {
    readonly subject: string;
    readonly seq: number;
    readonly time: string;
    readonly hdrs?: string;
    readonly data?: string;
  };
}

/** Creates the reader of a stream. */
export function createStreamReader(wire: Wire, stream: string): StreamReader {
  const directSubject = `$JS.API.DIRECT.GET.${stream}`;
  const leaderSubject = `$JS.API.STREAM.MSG.GET.${stream}`;

  async function leaderGet(query: object): Promise<StoredMessage | null> {
    const { message, error } = answerOf<LeaderAnswer>(
      await wire.request(leaderSubject, text.encode(JSON.stringify(query))),
    );
    // No exception: each start of a session asks for a record that does not exist yet.
    if (error && error.err_code !== MESSAGE_NOT_FOUND) throw failureOf(`reading ${stream}`, error);
    if (!message) return null;
    const { subject, seq, time, hdrs, data } = message;
    return {
      subject,
      seq,
      timeMs: Date.parse(time),
      data: data === undefined ? new Uint8Array() : Buffer.from(data, 'base64'),
      headers: hdrs === undefined ? new MsgHdrsImpl() : MsgHdrsImpl.decode(Buffer.from(hdrs, 'base64')),
    };
  }

  async function directGet(subject: string, payload: Uint8Array): Promise<StoredMessage | null> {
    const answer = await wire.request(subject, payload);
    const status = statusOf(answer);
    if (status === 0) return directMessage(answer);
    if (status === STATUS.notFound) return null;
    throw refusal(answer, status);
  }

  async function directBatch(subject: string, seq: number, limit: number): Promise<Batch> {
    const messages: StoredMessage[] = [];
    const query = { seq, next_by_subj: subject, batch: limit, max_bytes: batchMaxBytes };
    let bytes = 0;
    // The number of messages that the replica's index reports after each message, counted at the start of the request.
    let pending = 0;
    await wire.requestMany(directSubject, text.encode(JSON.stringify(query)), (answer) => {
      const status = statusOf(answer);
      if (status === STATUS.endOfBatch || status === STATUS.notFound) return true;
      if (status !== 0) throw refusal(answer, status);
      messages.push(directMessage(answer));
      bytes += answer.data.length;
      pending = Number(answer.headers?.last('Nats-Num-Pending'));
      return false;
    });
    // The server also counts subjects and headers as bytes, so near the limit it is unknown whether it was reached.
    const isFull = messages.length >= limit || bytes >= batchMaxBytes / 2;
    return { messages, skipped: isFull ? 0 : pending, isFull };
  }

  function refusal(answer: Msg, status: number): NatsRefusedError {
    return new NatsRefusedError(`reading ${stream}`, {
      code: status,
      err_code: 0,
      description: `${status} ${statusText(answer)}`,
    });
  }

  async function fromAnyReplica(
    read: () => Promise<StoredMessage | null>,
    isWanted: (message: StoredMessage) => boolean,
  ): Promise<StoredMessage | null> {
    for (let tries = 0; tries < REPLICA_TRIES; tries++) {
      const message = await read();
      if (message && isWanted(message)) return message;
    }
    return null;
  }

  async function* subjectsOf(filter: string): AsyncGenerator<string, void, undefined> {
    let offset = 0;
    let total = 1;
    while (offset < total) {
      const query = { subjects_filter: filter, offset };
      const what = `listing subjects of ${stream}`;
      const answer = await askJetStream<SubjectsAnswer>(wire, what, `STREAM.INFO.${stream}`, query);
      const page = Object.keys(answer.state?.subjects ?? {});
      if (page.length === 0) return;
      yield* page;
      offset += page.length;
      total = answer.total ?? 0;
    }
  }

  async function bestBatch(subject: string, seq: number, limit: number): Promise<Batch> {
    let best: Batch = { messages: [], skipped: 0, isFull: false };
    for (let tries = 0; tries < BATCH_TRIES; tries++) {
      const batch = await directBatch(subject, seq, limit);
      if (tries === 0 || batch.messages.length > best.messages.length) best = batch;
      if (best.skipped === 0) break;
    }
    return best;
  }

  const next = (subject: string, seq: number) =>
    directGet(directSubject, text.encode(`{"seq":${seq},"next_by_subj":"${subject}"}`));
  // The request's subject ends with the message's subject, so that a permission can restrict it.
  const last = (subject: string) => directGet(`${directSubject}.${subject}`, new Uint8Array());
  const leaderNext = (subject: string, seq: number) => leaderGet({ seq, next_by_subj: subject });
  const leaderLast = (subject: string) => leaderGet({ last_by_subj: subject });

  return {
    async confirmedLast(subject) {
      // Twice: the message may be purged between the reads. Then the index has reported it, but no replica serves it.
      for (let look = 0; look < 2; look++) {
        const newest = await leaderLast(subject);
        if (newest) return newest;
        // The index still reports a subject whose block is unreadable.
        const { done: isAbsent } = await subjectsOf(subject).next();
        if (isAbsent) return null;
        const served = await fromAnyReplica(
          () => last(subject),
          () => true,
        );
        if (served) return served;
      }
      throw new RecordNotServedError(stream, subject, null);
    },
    async expectedNext(subject, seq, end) {
      const isWanted = (message: StoredMessage) => message.seq <= end;
      const found = await leaderNext(subject, seq);
      if (found && isWanted(found)) return found;
      const served = await fromAnyReplica(() => next(subject, seq), isWanted);
      if (served) return served;
      throw new RecordNotServedError(stream, subject, end);
    },
    subjects: subjectsOf,
    leaderNext,
    leaderLast,
    next,
    last,
    async batch(subject, seq, limit) {
      return (await bestBatch(subject, seq, limit)).messages;
    },
    async gaplessBatch(subject, seq, limit) {
      const { messages, skipped, isFull } = await bestBatch(subject, seq, limit);
      if (skipped === 0 && !isFull) return messages;
      const found = new Map(messages.map((message) => [message.seq, message]));
      const end = messages.at(-1)?.seq ?? 0;
      let asked = 0;
      // Other subjects have sequences in between, so only the leader knows whether a message is missing.
      for (let from = seq; from <= end && asked < limit; from++) {
        if (found.has(from)) continue;
        asked++;
        const message = await leaderNext(subject, from);
        if (!message || message.seq > end) break;
        found.set(message.seq, message);
        from = message.seq;
      }
      return [...found.values()].sort((one, other) => one.seq - other.seq).slice(0, limit);
    },
  };
}

/**
 * Converts the answer of a direct get. The server adds headers with subject, sequence and time after the message's own
 * headers. Only the last value of each is the server's. A publisher could set an earlier value, for example to disguise
 * a steer as an approval.
 */
export function directMessage(answer: Msg): StoredMessage {
  const headers = answer.headers ?? new MsgHdrsImpl();
  return {
    subject: headers.last('Nats-Subject'),
    seq: Number(headers.last('Nats-Sequence')),
    timeMs: Date.parse(headers.last('Nats-Time-Stamp')),
    data: answer.data,
    headers,
  };
}
