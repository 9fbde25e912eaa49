/** Reads keys of a bucket, page by page: services choose their number and size, and all at once may not fit in memory. */
import { createStreamReader, type StoredMessage, wireOf } from '@coxswain/bus';
import { parseServedKey, SERVED_BOUNDS, STREAMS } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';

const PAGE = 256;
/** Default page limit of a read. Without it, heartbeats that arrive during the read could prolong it indefinitely. */
const PAGES_MAX = 256;
/**
 * Maximum concurrent reads of values that can be large, such as announcements. A server drops a connection for which it
 * queues more than 64 MiB, and one connection carries several such reads.
 */
const LARGE_READS_MAX = 4;
/** The same for small values: pauses, remembered rules, notes. Also 32 keys of the maximum size, 800 KiB, fit. */
export const SMALL_READS_MAX = 32;

/**
 * Reads the newest values of the keys that match a filter from any replica. The replica may lag or lack
 * keys. So it is for heartbeats, and for callers that ask the leader for missing keys. If a key is written during the
 * read, its newer value follows later.
 * @param subject the filter.
 * @param pagesMax maximum pages of 256 keys. Keys that are not rewritten periodically need no limit.
 * @throws NatsUnavailableError, NatsRefusedError.
 */
export async function* readKeys(
  nc: NatsConnection,
  bucket: string,
  subject: string,
  pagesMax: number = PAGES_MAX,
): AsyncGenerator<StoredMessage, void, undefined> {
  const reader = createStreamReader(wireOf(nc), `KV_${bucket}`);
  let from = 1;
  for (let pages = 0; pages < pagesMax; pages++) {
    const page = await reader.batch(subject, from, PAGE);
    yield* page;
    const last = page.at(-1);
    if (!last) return;
    from = last.seq + 1;
  }
}

/** Reads single keys, `readsMax` at a time, and yields the existing ones. */
export async function* readEach(
  subjects: Iterable<string> | AsyncIterable<string>,
  readsMax: number,
  read: (subject: string) => Promise<StoredMessage | null>,
): AsyncGenerator<StoredMessage, void, undefined> {
  const waiting: string[] = [];
  const readWaiting = async () => (await Promise.all(waiting.splice(0).map(read))).filter((stored) => stored !== null);
  for await (const subject of subjects) {
    waiting.push(subject);
    if (waiting.length === readsMax) yield* await readWaiting();
  }
  yield* await readWaiting();
}

/**
 * Reads the newest values of the registry keys that match a filter, including markers of removed keys. They are read
 * through the leader. A replica may lag or lack keys, and a pause, a revoked rule or a hook would be missed. Of each
 * tenant it reads `SERVED_BOUNDS.keysReadMax` keys at most: the keys of one tenant must not delay a host that starts.
 * Watches deliver the others, and lists fail.
 * @param readsMax maximum concurrent reads of single keys.
 * @throws NatsUnavailableError, NatsRefusedError, NotPermittedError; RecordNotServedError if no replica serves a key
 *   that the leader reports.
 */
export async function* readRegistry(
  nc: NatsConnection,
  filter: string,
  readsMax: number = LARGE_READS_MAX,
): AsyncGenerator<StoredMessage, void, undefined> {
  const reader = createStreamReader(wireOf(nc), `KV_${STREAMS.registry}`);
  const subjects = firstOfEachTenant(reader.subjects(filter), SERVED_BOUNDS.keysReadMax);
  yield* readEach(subjects, readsMax, (subject) => reader.confirmedLast(subject));
}

/** The first `max` keys of each tenant. Invalid keys and rules, which are read for one tenant, count together. */
export async function* firstOfEachTenant(
  keys: AsyncIterable<string>,
  max: number,
): AsyncGenerator<string, void, undefined> {
  const counts = new Map<string | undefined, number>();
  for await (const key of keys) {
    const tenant = parseServedKey(key)?.tenant;
    const count = (counts.get(tenant) ?? 0) + 1;
    counts.set(tenant, count);
    if (count <= max) yield key;
  }
}
