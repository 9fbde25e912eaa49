/** Reads the keys of a bucket, and what a service has written there. */
import type { NatsConnection } from '@nats-io/nats-core';
import { createStreamReader, type StoredMessage } from './stream-reader.ts';
import { wireOf } from './wire.ts';

/** What reads a value: a schema of Zod's. */
export interface ValueSchema<T> {
  safeParse(value: unknown): { readonly data?: T | undefined };
}

const PAGE = 256;
/** Beats go on while they are read: somewhere reading has to end. */
const PAGES_MAX = 256;

/**
 * The newest values of the keys that a subject stands for. One that is written while they are read is met again further
 * on, and counts as it is then.
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

/** What stands in a message or under a key; null where it is not JSON, or is somebody else's. */
export function valueIn<T>(data: Uint8Array, schema: ValueSchema<T>): T | null {
  try {
    return schema.safeParse(JSON.parse(new TextDecoder().decode(data))).data ?? null;
  } catch {
    // No JSON.
    return null;
  }
}
