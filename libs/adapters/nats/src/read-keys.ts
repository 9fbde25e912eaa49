/** Reads keys of a bucket. */
import { createStreamReader, type StoredMessage, type StreamReader, wireOf } from '@coxswain/bus';
import { STREAMS } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';

const PAGE = 256;
/** Default page limit of a read. Without it, heartbeats that arrive during the read could prolong it indefinitely. */
const PAGES_MAX = 256;
/** Maximum concurrent reads of single keys. */
const CONCURRENT_READS_MAX = 32;

/**
 * Reads the newest values of the keys that match a filter, by subject, from any replica. The replica may lag or lack
 * keys. So it is for heartbeats, and for callers that ask the leader for missing keys. If a key is written during the
 * read, the newer value appears again later in the stream and replaces the earlier one.
 * @param subject the filter.
 * @param pagesMax maximum pages of 256 keys. Keys that are not rewritten periodically need no limit.
 * @throws NatsUnavailableError, NatsRefusedError.
 */
export async function readKeys(
  nc: NatsConnection,
  bucket: string,
  subject: string,
  pagesMax: number = PAGES_MAX,
): Promise<ReadonlyMap<string, StoredMessage>> {
  const reader = createStreamReader(wireOf(nc), `KV_${bucket}`);
  const found = new Map<string, StoredMessage>();
  let from = 1;
  for (let pages = 0; pages < pagesMax; pages++) {
    const page = await reader.batch(subject, from, PAGE);
    for (const stored of page) found.set(stored.subject, stored);
    const last = page.at(-1);
    if (!last) break;
    from = last.seq + 1;
  }
  return found;
}

/** Reads single keys, {@link CONCURRENT_READS_MAX} at a time. @returns the existing ones. */
export async function readEach(
  subjects: readonly string[],
  read: (subject: string) => Promise<StoredMessage | null>,
): Promise<StoredMessage[]> {
  const found: StoredMessage[] = [];
  for (let at = 0; at < subjects.length; at += CONCURRENT_READS_MAX) {
    const some = await Promise.all(subjects.slice(at, at + CONCURRENT_READS_MAX).map(read));
    found.push(...some.flatMap((stored) => stored ?? []));
  }
  return found;
}

/** Lists all subjects that the leader reports for a filter. */
export async function reportedSubjects(reader: StreamReader, filter: string): Promise<string[]> {
  const found: string[] = [];
  for await (const subject of reader.subjects(filter)) found.push(subject);
  return found;
}

/**
 * Reads the newest values of the registry keys that match a filter, including markers of removed keys, in the order of
 * writing. They are read through the leader. A replica may lag or lack keys, and a pause, a revoked rule or a hook
 * would be missed.
 * @throws NatsUnavailableError, NatsRefusedError, NotPermittedError; RecordNotServedError if no replica serves a key
 *   that the leader reports.
 */
export async function readRegistry(nc: NatsConnection, filter: string): Promise<readonly StoredMessage[]> {
  const reader = createStreamReader(wireOf(nc), `KV_${STREAMS.registry}`);
  const found = await readEach(await reportedSubjects(reader, filter), (subject) => reader.confirmedLast(subject));
  return found.sort((one, other) => one.seq - other.seq);
}
