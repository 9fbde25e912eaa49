/** Reads the keys of a bucket, and what a service has written there. */
import type { NatsConnection } from '@nats-io/nats-core';
import { createStreamReader, type StoredMessage, type StreamReader } from './stream-reader.ts';
import { wireOf } from './wire.ts';

/** What reads a value: a schema of Zod's. */
export interface ValueSchema<T> {
  safeParse(value: unknown): { readonly data?: T | undefined };
}

const PAGE = 256;
/** Beats go on while they are read: somewhere reading has to end. */
const PAGES_MAX = 256;
/** Keys that are read one by one, so many at a time. */
const ASKED_AT_ONCE = 32;

/**
 * The newest values of the keys that a subject stands for, as any replica has them: it may lag, or lack keys. For heartbeats,
 * and where the caller asks the leader for what is missing. One that is written while they are read is met again further on,
 * and counts as it is then.
 * @param pagesMax so many pages of 256 at most; a key that nobody writes again and again needs no bound.
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

/** Reads keys one by one, some at a time. @returns those that are there. */
export async function readEach(
  subjects: readonly string[],
  read: (subject: string) => Promise<StoredMessage | null>,
): Promise<StoredMessage[]> {
  const found: StoredMessage[] = [];
  for (let at = 0; at < subjects.length; at += ASKED_AT_ONCE) {
    const some = await Promise.all(subjects.slice(at, at + ASKED_AT_ONCE).map(read));
    found.push(...some.flatMap((stored) => stored ?? []));
  }
  return found;
}

/** All subjects that the leader reports for a filter. */
export async function reportedSubjects(reader: StreamReader, filter: string): Promise<string[]> {
  const found: string[] = [];
  for await (const subject of reader.subjects(filter)) found.push(subject);
  return found;
}

/** What stands in a message or under a key; null where it is not JSON, or is somebody else's. */
export function valueIn<T>(data: Uint8Array, schema: ValueSchema<T>): T | null {
  try {
    return schema.safeParse(JSON.parse(new TextDecoder().decode(data))).data ?? null;
  } catch {
    // No JSON.
    return null;
  }
}
