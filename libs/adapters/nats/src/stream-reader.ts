/**
 * Reads one stream by subject and sequence. Direct gets are answered by any replica, which may lag a moment behind;
 * reads through the leader see everything that has been acknowledged, and cost the leader's time.
 */
import { type Msg, type MsgHdrs, MsgHdrsImpl } from '@nats-io/nats-core';
import {
  answerOf,
  isMessageNotFound,
  NatsRefusedError,
  NatsUnavailableError,
  STATUS,
  statusOf,
  statusText,
} from './nats-status.ts';
import type { Wire } from './wire.ts';

/** One message as it stands in a stream. */
export interface StoredMessage {
  readonly subject: string;
  readonly seq: number;
  /** When the stream took it, milliseconds since 1970. */
  readonly timeMs: number;
  readonly data: Uint8Array;
  readonly headers: MsgHdrs;
}

/** Reads of one stream. All throw NatsUnavailableError without an answer and NatsRefusedError for an error. */
export interface StreamReader {
  /** The first message on `subject` (wildcards allowed) at or after `seq`, from any replica; null where there is none. */
  next(subject: string, seq: number): Promise<StoredMessage | null>;
  /** As {@link StreamReader.next}, through the leader. */
  leaderNext(subject: string, seq: number): Promise<StoredMessage | null>;
  /** The newest message on `subject`, from any replica, or null. */
  last(subject: string): Promise<StoredMessage | null>;
  /** As {@link StreamReader.last}, through the leader. */
  leaderLast(subject: string): Promise<StoredMessage | null>;
  /** Up to `limit` messages on `subject` at or after `seq`, in order, from any replica, in one request. Fewer are no proof that there are no more. */
  batch(subject: string, seq: number, limit: number): Promise<StoredMessage[]>;
}

/** Bytes that one batch may bring; it ends early there. At most one record more than this is in memory per read. */
const batchMaxBytes = 4 * 1024 * 1024;

const text = new TextEncoder();

interface LeaderAnswer {
  readonly message?: {
    readonly subject: string;
    readonly seq: number;
    readonly time: string;
    readonly hdrs?: string;
    readonly data?: string;
  };
}

/** Makes a reader of a stream. */
export function createStreamReader(wire: Wire, stream: string): StreamReader {
  const directSubject = `$JS.API.DIRECT.GET.${stream}`;
  const leaderSubject = `$JS.API.STREAM.MSG.GET.${stream}`;

  async function leaderGet(query: object): Promise<StoredMessage | null> {
    const answer = answerOf<LeaderAnswer>(await wire.request(leaderSubject, text.encode(JSON.stringify(query))));
    if (answer.error && isMessageNotFound(answer.error)) return null;
    // A stream without a leader answers with an error of its own: that is no answer, rather than a refusal.
    if (answer.error?.code === 503) throw new NatsUnavailableError(`reading ${stream}: ${answer.error.description}`);
    if (answer.error) throw new NatsRefusedError(`reading ${stream}`, answer.error);
    if (!answer.message) return null;
    const { subject, seq, time, hdrs, data } = answer.message;
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

  function refusal(answer: Msg, status: number): NatsRefusedError {
    return new NatsRefusedError(`reading ${stream}`, {
      code: status,
      err_code: 0,
      description: `${status} ${statusText(answer)}`,
    });
  }

  return {
    next: (subject, seq) => directGet(directSubject, text.encode(`{"seq":${seq},"next_by_subj":"${subject}"}`)),
    leaderNext: (subject, seq) => leaderGet({ seq, next_by_subj: subject }),
    // The subject stands in the request's own, so that a permission can be bound to it.
    last: (subject) => directGet(`${directSubject}.${subject}`, new Uint8Array()),
    leaderLast: (subject) => leaderGet({ last_by_subj: subject }),
    async batch(subject, seq, limit) {
      const messages: StoredMessage[] = [];
      const query = { seq, next_by_subj: subject, batch: limit, max_bytes: batchMaxBytes };
      await wire.requestMany(directSubject, text.encode(JSON.stringify(query)), (answer) => {
        const status = statusOf(answer);
        if (status === STATUS.endOfBatch || status === STATUS.notFound) return true;
        if (status !== 0) throw refusal(answer, status);
        messages.push(directMessage(answer));
        return false;
      });
      return messages;
    },
  };
}

/**
 * The server says where a message lies in headers that it adds behind those which the message was published with. Of each the
 * last is the server's: the first may be a publisher's, who could pass a steer off as an approval by it.
 */
function directMessage(answer: Msg): StoredMessage {
  const headers = answer.headers ?? new MsgHdrsImpl();
  return {
    subject: headers.last('Nats-Subject'),
    seq: Number(headers.last('Nats-Sequence')),
    timeMs: Date.parse(headers.last('Nats-Time-Stamp')),
    data: answer.data,
    headers,
  };
}
