/**
 * Reads a stream from each of its replicas, window by window, and compares what they serve. Every reader of replicas uses this:
 * the check of replicas, the rewrite of a stream, and the tests that kill servers.
 */
import { createHash } from 'node:crypto';
import type { StoredMessage } from './stream-reader.ts';
import type { TracedReads, TracedWindow, WindowQuery } from './traced-reads.ts';

/** The same range of a stream as each replica serves it. */
export interface ReplicaWindow {
  /** The first sequence that was asked for. */
  readonly seq: number;
  /** The last sequence that every server that answered was read up to; Infinity where all have reached their end. */
  readonly end: number;
  /** What each server answered, by its name. */
  readonly read: ReadonlyMap<string, TracedWindow>;
  /** Servers that did not answer: such a server holds a block that it cannot read, or is away. */
  readonly silent: readonly string[];
}

/** A message that a replica does not serve as the others do. */
export interface ReplicaDifference {
  /** `missing`: it does not serve the message. `differs`: it serves other content. */
  readonly kind: 'missing' | 'differs';
  readonly server: string;
  readonly seq: number;
  /** The servers that serve the message, or the content that most of them serve. */
  readonly others: readonly string[];
}

/** What a comparison found. */
export interface ReplicaComparison {
  /** Distinct messages, as far as any replica serves them. */
  readonly messages: number;
  /** By server: messages that its replica does not serve, or serves with other content. Servers without one are left out. */
  readonly wrong: ReadonlyMap<string, number>;
}

/** A server answers no read of its replica: it holds a block that it cannot read, or is away. */
export class ReplicaUnreadableError extends Error {
  override readonly name = 'ReplicaUnreadableError';
  readonly server: string;
  constructor(server: string, stream: string, seq: number) {
    super(`${server} does not answer reads of ${stream} from sequence ${seq}`);
    this.server = server;
  }
}

/** Messages and bytes of one read. Memory is one read for each server. */
const WINDOW = { batch: 256, max_bytes: 4 * 1024 * 1024 };

/** A replica with so many wrong messages is not read further. */
const WRONG_MAX = 100;

/** Headers of a direct get that describe the request's progress, not the message. */
const PROGRESS_HEADERS: ReadonlySet<string> = new Set(['nats-num-pending', 'nats-last-sequence', 'nats-upto-sequence']);

/**
 * Reads one window from each of the named servers; from whichever answers, where none is named.
 * @throws NatsUnavailableError where no replica answers.
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
 * Reads a stream from each of the named servers, from its first message on, window by window, until all have reached their end. A server
 * that does not answer is named in that window, and not read further.
 * @throws NatsUnavailableError where no replica answers.
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

/** The messages of a window by server, without what only some servers were read up to. */
export function servedIn({ read, end }: ReplicaWindow): Map<string, readonly StoredMessage[]> {
  return new Map([...read].map(([server, { messages }]) => [server, messages.filter(({ seq }) => seq <= end)]));
}

/** Where the replicas differ in a window, in the order of sequences. What is stored or deleted meanwhile differs for a moment. */
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
 * Compares the replicas of a stream up to a sequence, message by message. A message that is deleted while the comparison
 * runs is not counted as wrong.
 * @param servers the names of the servers that hold the stream.
 * @throws ReplicaUnreadableError, NatsUnavailableError.
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

/** Asks again: a message may have been stored or deleted between the reads of the replicas. */
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

/** The content of each message of a window, by the servers that serve it. */
function holdersIn(window: ReplicaWindow): Map<number, Map<string, string>> {
  const holders = new Map<number, Map<string, string>>();
  for (const [server, messages] of servedIn(window))
    for (const message of messages) {
      const of = holders.get(message.seq) ?? new Map<string, string>();
      holders.set(message.seq, of.set(server, contentOf(message)));
    }
  return new Map([...holders].sort(([one], [other]) => one - other));
}

/** A hash of all that is stored of a message. */
function contentOf({ subject, timeMs, data, headers }: StoredMessage): string {
  const own = [...headers].filter(([key]) => !PROGRESS_HEADERS.has(key.toLowerCase()));
  return createHash('sha256')
    .update(JSON.stringify([subject, timeMs, own]))
    .update(data)
    .digest('base64');
}
