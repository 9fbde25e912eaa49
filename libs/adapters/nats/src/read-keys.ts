/** Reads keys of a bucket, and parses the values that services write there. */
import { createStreamReader, type StoredMessage, type StreamReader, wireOf } from '@coxswain/bus';
import type { NatsConnection } from '@nats-io/nats-core';

/** The part of a Zod schema that parses a value. */
export interface ValueSchema<T> {
  safeParse(value: unknown): { readonly data?: T | undefined };
}

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

/** Parses the JSON value of a message or key. @returns null if it is not JSON, or does not match the schema. */
export function valueIn<T>(data: Uint8Array, schema: ValueSchema<T>): T | null {
  try {
    return schema.safeParse(JSON.parse(new TextDecoder().decode(data))).data ?? null;
  } catch {
    // Not JSON.
    return null;
  }
}
