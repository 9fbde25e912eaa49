/**
 * Reads a stream from each of its replicas, window by window, and compares the messages. Used by the replica check, the
 * rewrite of a stream, and the tests that kill servers.
 */
import { createHash } from 'node:crypto';
import type { StoredMessage } from '@coxswain/bus';
import type { TracedReads, TracedWindow, WindowQuery } from './traced-reads.ts';

/** One range of a stream, as each replica serves it. */
export interface ReplicaWindow {
  /** The first requested sequence. */
  readonly seq: number;
  /** The last sequence that was read from all servers that answered; Infinity if all have reached their end. */
  readonly end: number;
  /** The answers, by server name. */
  readonly read: ReadonlyMap<string, TracedWindow>;
  /** Servers that did not answer. Such a server cannot read a block of its replica, or is unreachable. */
  readonly silent: readonly string[];
}

/** A message that one replica serves differently from the others. */
export interface ReplicaDifference {
  /** `missing`: it does not serve the message. `differs`: it serves other content. */
  readonly kind: 'missing' | 'differs';
  readonly server: string;
  readonly seq: number;
  /** The servers that serve the message, or the content that most of them serve. */
  readonly others: readonly string[];
}

/** The result of a comparison. */
export interface ReplicaComparison {
  /** Number of distinct messages that at least one replica serves. */
  readonly messages: number;
  /** Number of missing or different messages, by server. Servers without such messages are omitted. */
  readonly wrong: ReadonlyMap<string, number>;
}

/** A server does not answer reads of its replica: it cannot read a block, or is unreachable. */
export class ReplicaUnreadableError extends Error {
  override readonly name = 'ReplicaUnreadableError';
  readonly server: string;
  constructor(server: string, stream: string, seq: number) {
    super(`${server} does not answer reads of ${stream} from sequence ${seq}`);
    this.server = server;
  }
}

/** Maximum messages and bytes of one read. Memory use is one read per server. */
const WINDOW = { batch: 256, max_bytes: 4 * 1024 * 1024 };

/** A comparison ends early when one replica has this many wrong messages. */
const WRONG_MAX = 100;

/** Headers of a direct get that describe the progress of the request, not the message. */
const PROGRESS_HEADERS: ReadonlySet<string> = new Set(['nats-num-pending', 'nats-last-sequence', 'nats-upto-sequence']);

/**
 * Reads one window from each of the named servers, or from any servers that answer if none is named.
 * @throws NatsUnavailableError if no replica answers; NotPermittedError.
 */
export async function readWindow(
  reads: TracedReads,
  stream: string,
  servers: readonly string[],
  query: WindowQuery,
): Promise<ReplicaWindow> {
  const found = await reads.ofEach(stream, servers, query);
  const read = servers.length === 0 ? found : new Map([...found].filter(([server]) => servers.includes(server)));
  const ends = [...read.values()].map(({ reachedEnd, messages }) =>
    reachedEnd ? Number.POSITIVE_INFINITY : (messages.at(-1)?.seq ?? query.seq),
  );
  return { seq: query.seq, end: Math.min(...ends), read, silent: servers.filter((server) => !read.has(server)) };
}

/**
 * Reads a stream from each of the named servers, window by window, from the first message until all have reached their
 * end or `upToSeq`. A server that does not answer is listed in that window's `silent`, and not read further.
 * @throws NatsUnavailableError if no replica answers; NotPermittedError.
 */
export async function* readReplicas(
  reads: TracedReads,
  stream: string,
  servers: readonly string[],
  upToSeq = Number.POSITIVE_INFINITY,
): AsyncGenerator<ReplicaWindow, void, undefined> {
  let asked = servers;
  for (let end = 0; end < upToSeq && asked.length > 0; ) {
    const window = await readWindow(reads, stream, asked, { seq: end + 1, ...WINDOW });
    end = Math.min(window.end, upToSeq);
    yield { ...window, end };
    asked = asked.filter((server) => window.read.has(server));
  }
}

/** The messages of a window by server, up to the window's `end`. */
export function servedIn({ read, end }: ReplicaWindow): Map<string, readonly StoredMessage[]> {
  return new Map([...read].map(([server, { messages }]) => [server, messages.filter(({ seq }) => seq <= end)]));
}

/**
 * The differences between replicas in a window, ordered by sequence. Messages that are stored or deleted during the
 * read may appear as differences.
 */
export function differencesIn(window: ReplicaWindow): ReplicaDifference[] {
  const found: ReplicaDifference[] = [];
  for (const [seq, holders] of holdersIn(window)) {
    const servers = [...window.read.keys()];
    for (const server of servers.filter((one) => !holders.has(one)))
      found.push({ kind: 'missing', server, seq, others: [...holders.keys()] });
    const byContent = new Map<string, string[]>();
    for (const [server, content] of holders) byContent.set(content, [...(byContent.get(content) ?? []), server]);
    const [most = [], ...fewer] = [...byContent.values()].sort((one, other) => other.length - one.length);
    for (const server of fewer.flat()) found.push({ kind: 'differs', server, seq, others: most });
  }
  return found;
}

/**
 * Compares the replicas of a stream message by message, up to a sequence. A message that is deleted during the
 * comparison is not counted as missing.
 * @param servers the names of the servers that hold the stream.
 * @throws ReplicaUnreadableError, NatsUnavailableError, NotPermittedError.
 */
export async function compareReplicas(
  reads: TracedReads,
  stream: string,
  servers: readonly string[],
  upToSeq: number,
): Promise<ReplicaComparison> {
  const wrong = new Map<string, number>();
  const count = (server: string) => wrong.set(server, (wrong.get(server) ?? 0) + 1);
  let messages = 0;
  for await (const window of readReplicas(reads, stream, servers, upToSeq)) {
    const [silent] = window.silent;
    if (silent !== undefined) throw new ReplicaUnreadableError(silent, stream, window.seq);
    messages += holdersIn(window).size;
    const differences = differencesIn(window);
    for (const { kind, server } of differences) if (kind === 'differs') count(server);
    const missing = new Set(differences.flatMap(({ kind, seq }) => (kind === 'missing' ? [seq] : [])));
    for (const seq of missing) for (const server of await serversWithout(reads, stream, servers, seq)) count(server);
    if ([...wrong.values()].some((of) => of >= WRONG_MAX)) break;
  }
  return { messages, wrong };
}

/**
 * Reads one message again from all servers: it may have been stored or deleted between the first reads.
 * @returns the servers that do not serve it; none if no server serves it.
 */
async function serversWithout(
  reads: TracedReads,
  stream: string,
  servers: readonly string[],
  seq: number,
): Promise<string[]> {
  const query = { seq, batch: 1, max_bytes: WINDOW.max_bytes };
  const { read, silent } = await readWindow(reads, stream, servers, query);
  if (silent[0] !== undefined) throw new ReplicaUnreadableError(silent[0], stream, seq);
  const without = servers.filter((server) => read.get(server)?.messages[0]?.seq !== seq);
  return without.length === servers.length ? [] : without;
}

/** For each sequence of a window, in order: the content hash by server. */
function holdersIn(window: ReplicaWindow): Map<number, Map<string, string>> {
  const holders = new Map<number, Map<string, string>>();
  for (const [server, messages] of servedIn(window))
    for (const message of messages) {
      const of = holders.get(message.seq) ?? new Map<string, string>();
      holders.set(message.seq, of.set(server, contentOf(message)));
    }
  return new Map([...holders].sort(([one], [other]) => one - other));
}

/** A hash of a message's subject, time, own headers and data. */
function contentOf({ subject, timeMs, data, headers }: StoredMessage): string {
  const own = [...headers].filter(([key]) => !PROGRESS_HEADERS.has(key.toLowerCase()));
  return createHash('sha256')
    .update(JSON.stringify([subject, timeMs, own]))
    .update(data)
    .digest('base64');
}
