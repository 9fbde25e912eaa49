import {
  directMessage,
  inboxPrefixOf,
  NatsUnavailableError,
  NotPermittedError,
  onConnectionChange,
  STATUS,
  type StoredMessage,
  statusOf,
} from '@coxswain/bus';
import { createInbox, headers, type Msg, type NatsConnection } from '@nats-io/nats-core';

/** A read of a replica: messages at or after a sequence. */
export interface WindowQuery {
  readonly seq: number;
  readonly batch: number;
  readonly max_bytes: number;
}

/** The answer of one replica. */
export interface TracedWindow {
  readonly messages: readonly StoredMessage[];
  /** Number of messages in the replica's index at or after the query's sequence; 0 if it reports none. */
  readonly counted: number;
  /** The number of these after the last message that it sent. */
  readonly pending: number;
  /** It sent all messages that it could, and no limit of the query was reached. */
  readonly reachedEnd: boolean;
}

/**
 * Direct gets that report which server answered. A direct get goes to one replica of the server's choice, and its
 * answer does not name the replica. Message tracing does: with `Nats-Trace-Dest`, every server on the path reports
 * itself. The last one has answered.
 */
export interface TracedReads {
  /**
   * Reads from each of the named servers, or from any servers that answer if none is named. Takes about seven seconds
   * at most.
   * @returns the answers by server name. Servers that did not answer in a bounded number of tries are omitted.
   * @throws NatsUnavailableError if no replica answers; NotPermittedError if this user may not read or trace the
   *   stream.
   */
  ofEach(stream: string, servers: readonly string[], query: WindowQuery): Promise<Map<string, TracedWindow>>;
  close(): void;
}

interface TraceEvent {
  readonly server?: { readonly name?: string };
  /** Number of servers that the message was forwarded to. */
  readonly hops?: number;
}

interface Pending {
  /** The subjects that it publishes to: the request, and the trace destination. */
  readonly subjects: readonly string[];
  readonly query: WindowQuery;
  readonly messages: StoredMessage[];
  counted: number;
  left: number;
  isDone: boolean;
  server: string | null;
  readonly settle: () => void;
  readonly fail: (error: NotPermittedError) => void;
}

/** Timeout of one read, milliseconds. */
const ANSWER_TIMEOUT_MS = 3_000;
/**
 * Maximum rounds of reads in search of every replica. A given replica of three is missed about once in 17,000 times at
 * most, one of five about once in 500 times.
 */
const ROUNDS = 10;
/**
 * Maximum rounds with an unanswered read. After them, the servers without an answer are declared silent. The second
 * round has twice the reads. So with one dead server of three, a live one is missed about once in 300 times.
 */
const UNANSWERED_ROUNDS = 2;
const READS_PER_SERVER = 2;

/** Opens traced reads on a connection. */
export function openTracedReads(nc: NatsConnection): TracedReads {
  const prefix = createInbox(inboxPrefixOf(nc));
  const pending = new Map<string, Pending>();
  let serial = 0;

  const check = (token: string, read: Pending) => {
    if (!read.isDone || read.server === null) return;
    pending.delete(token);
    read.settle();
  };
  const subscription = nc.subscribe(`${prefix}.*.*`, {
    callback(error, message) {
      const [kind, token = ''] = message.subject.slice(prefix.length + 1).split('.');
      const read = pending.get(token);
      if (error || !read) return;
      if (kind === 'trace') {
        const { server, hops = 0 } = eventIn(message);
        if (hops === 0 && server?.name !== undefined) read.server = server.name;
      } else answer(read, message);
      check(token, read);
    },
  });
  // The server drops a request that this user may not send or trace. Without this check, the read would end as if no
  // replica had answered.
  const ignoreRefusals = onConnectionChange(nc, {
    refused(subject) {
      for (const read of pending.values())
        if (read.subjects.includes(subject)) read.fail(new NotPermittedError(subject));
    },
  });

  async function readOnce(stream: string, query: WindowQuery): Promise<Pending> {
    serial += 1;
    const token = String(serial);
    const subject = `$JS.API.DIRECT.GET.${stream}`;
    const traceTo = `${prefix}.trace.${token}`;
    let timer: NodeJS.Timeout | undefined;
    const read = new Promise<Pending>((resolve, reject) => {
      const one: Pending = {
        subjects: [subject, traceTo],
        query,
        messages: [],
        counted: 0,
        left: 0,
        isDone: false,
        server: null,
        settle: () => resolve(one),
        fail: reject,
      };
      pending.set(token, one);
      timer = setTimeout(() => resolve(one), ANSWER_TIMEOUT_MS);
      const head = headers();
      head.set('Nats-Trace-Dest', traceTo);
      const body = JSON.stringify({ ...query, next_by_subj: '>' });
      nc.publish(subject, body, { reply: `${prefix}.answer.${token}`, headers: head });
    });
    try {
      return await read;
    } finally {
      clearTimeout(timer);
      pending.delete(token);
    }
  }

  return {
    async ofEach(stream, servers, query) {
      const found = new Map<string, TracedWindow>();
      const wanted = new Set(servers);
      for (let round = 0, unanswered = 0; round < ROUNDS && unanswered < UNANSWERED_ROUNDS; round++) {
        const missing = [...wanted].filter((server) => !found.has(server)).length;
        if (missing === 0 && found.size > 0) break;
        const count = Math.max(1, READS_PER_SERVER * missing * (unanswered + 1));
        const reads = await Promise.all(Array.from({ length: count }, () => readOnce(stream, query)));
        if (nc.isClosed()) throw new NatsUnavailableError('the connection is closed');
        if (reads.some(({ isDone, server }) => !isDone || server === null)) unanswered++;
        for (const read of reads) if (read.isDone && read.server !== null) found.set(read.server, windowOf(read));
      }
      if (found.size === 0)
        throw new NatsUnavailableError(`no replica of ${stream} answers, or no server says which has answered`);
      return found;
    },
    close() {
      ignoreRefusals();
      subscription.unsubscribe();
    },
  };
}

function answer(read: Pending, message: Msg): void {
  const status = statusOf(message);
  if (status === STATUS.endOfBatch || status === STATUS.notFound) {
    read.isDone = true;
    return;
  }
  // Other statuses ("no responders") come from no replica.
  if (status !== 0) return;
  read.left = Number(message.headers?.last('Nats-Num-Pending') ?? 0);
  if (read.messages.length === 0) read.counted = read.left + 1;
  read.messages.push(directMessage(message));
}

function windowOf({ query, messages, counted, left }: Pending): TracedWindow {
  const bytes = messages.reduce((sum, { data }) => sum + data.length, 0);
  // The server also counts subjects and headers.
  const isFull = messages.length >= query.batch || bytes >= query.max_bytes / 2;
  return { messages, counted, pending: left, reachedEnd: !isFull };
}

function eventIn(message: Msg): TraceEvent {
  try {
    return JSON.parse(message.string()) as TraceEvent;
  } catch {
    // Not JSON: the read ends at its timeout.
    return {};
  }
}
