/** Reads all messages of a stream from each of its replicas, side by side, and compares them. */
import type { StoredMessage } from './stream-reader.ts';
import type { TracedReads, TracedWindow } from './traced-reads.ts';

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

/** Headers of a direct get that describe the request's progress, not the message. */
const PROGRESS_HEADERS: ReadonlySet<string> = new Set(['nats-num-pending', 'nats-last-sequence', 'nats-upto-sequence']);

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
  let messages = 0;
  for (let seq = 1; seq <= upToSeq; ) {
    const windows = await windowsOf(reads, stream, servers, seq, WINDOW);
    // Compared is as far as all of them reach.
    const ends = [...windows.values()].map(({ reachedEnd, messages: read }) =>
      reachedEnd ? Number.POSITIVE_INFINITY : (read.at(-1)?.seq ?? seq),
    );
    const end = Math.min(upToSeq, ...ends);
    const contents = new Map<number, Map<string, string>>();
    for (const [server, { messages: read }] of windows) {
      for (const message of read) {
        if (message.seq > end) break;
        const holders = contents.get(message.seq) ?? new Map<string, string>();
        contents.set(message.seq, holders.set(server, contentOf(message)));
      }
    }
    for (const [at, holders] of contents) {
      messages++;
      const differs = new Set(holders.values()).size > 1;
      if (holders.size === servers.length && !differs) continue;
      const unequal = differs ? [...holders.keys()] : await serversWithout(reads, stream, servers, at);
      for (const server of unequal) wrong.set(server, (wrong.get(server) ?? 0) + 1);
    }
    if ([...wrong.values()].some((count) => count >= WRONG_MAX)) break;
    seq = end + 1;
  }
  return { messages, wrong };
}

/** A replica with so many wrong messages is not read further. */
const WRONG_MAX = 100;

/** Asks again: a message may have been stored or deleted between the reads of the replicas. */
async function serversWithout(
  reads: TracedReads,
  stream: string,
  servers: readonly string[],
  seq: number,
): Promise<string[]> {
  const windows = await windowsOf(reads, stream, servers, seq, { batch: 1, max_bytes: WINDOW.max_bytes });
  const without = servers.filter((server) => windows.get(server)?.messages[0]?.seq !== seq);
  return without.length === servers.length ? [] : without;
}

async function windowsOf(
  reads: TracedReads,
  stream: string,
  servers: readonly string[],
  seq: number,
  bounds: { readonly batch: number; readonly max_bytes: number },
): Promise<Map<string, TracedWindow>> {
  const windows = await reads.ofEach(stream, servers, { seq, ...bounds });
  const silent = servers.find((server) => !windows.has(server));
  if (silent !== undefined) throw new ReplicaUnreadableError(silent, stream, seq);
  for (const server of windows.keys()) if (!servers.includes(server)) windows.delete(server);
  return windows;
}

function contentOf({ subject, timeMs, data, headers }: StoredMessage): string {
  const own = [...headers].filter(([key]) => !PROGRESS_HEADERS.has(key.toLowerCase()));
  return JSON.stringify([subject, timeMs, Buffer.from(data).toString('base64'), own]);
}
