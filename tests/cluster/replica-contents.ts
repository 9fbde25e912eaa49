/** What each server's own replica of a stream serves. */
import {
  NatsUnavailableError,
  openTracedReads,
  readReplicas,
  type StoredMessage,
  servedIn,
  type TracedReads,
} from '@coxswain/adapter-nats';
import type { NatsConnection } from '@nats-io/nats-core';
import { askUntil } from '../e2e/kit/ask-until.ts';

/** The bound of a replica's catch-up after the restart of its server, before its reads count. */
const CATCH_UP_MS = 60_000;

/** A busy server may miss the time of one read, and reads find their server by chance: only a server that misses them all is unreadable. */
const READS_MAX = 3;

/**
 * All messages of a stream, in order, as each server's own replica serves them. Of a server that stops to answer these are
 * the messages before that; of one that never answers there are none.
 */
export async function replicaContents(
  nc: NatsConnection,
  stream: string,
  servers: readonly string[],
): Promise<Map<string, StoredMessage[]>> {
  const reads = openTracedReads(nc);
  try {
    await answering(reads, stream, servers);
    for (let read = 1; ; read++) {
      const contents = new Map(servers.map((server): [string, StoredMessage[]] => [server, []]));
      let areAll = true;
      for await (const window of readReplicas(reads, stream, servers)) {
        for (const [server, messages] of servedIn(window)) contents.get(server)?.push(...messages);
        areAll &&= window.silent.length === 0;
      }
      if (areAll || read === READS_MAX) return contents;
    }
  } finally {
    reads.close();
  }
}

/** Waits for every server to answer; a damaged replica may never do. */
async function answering(reads: TracedReads, stream: string, servers: readonly string[]): Promise<void> {
  const answered = new Set<string>();
  const areAll = async () => {
    const missing = servers.filter((server) => !answered.has(server));
    const found = await reads.ofEach(stream, missing, { seq: 1, batch: 1, max_bytes: 1 }).catch((error: unknown) => {
      if (!(error instanceof NatsUnavailableError)) throw error;
      return new Map<string, unknown>();
    });
    for (const server of found.keys()) answered.add(server);
    return servers.every((server) => answered.has(server));
  };
  await askUntil(`all replicas of ${stream} to answer`, areAll, CATCH_UP_MS).catch((error: unknown) => {
    if (answered.size === 0) throw error;
  });
}
