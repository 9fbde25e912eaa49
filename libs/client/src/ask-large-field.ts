/** Requests a large field from a session host, for users that may not read the object store. */
import { NatsUnavailableError, NoRespondersError, wireOf } from '@coxswain/bus';
import { type BackOff, delayAfter, HEADERS, subjects, type TenantId } from '@coxswain/protocol';
import type { Msg, NatsConnection } from '@nats-io/nats-core';
import { CoxswainError, NoHostError } from './client-errors.ts';

/** The maximum pause between two parts of the reply. */
const SILENCE_MAX_MS = 10_000;
/** A host with too many concurrent requests is asked again, after pauses that grow. */
const TRIES = 8;
const AGAIN: BackOff = { firstMs: 100, maxMs: 6_400 };

/**
 * Requests the bytes with a hash from a host.
 * @returns null if the object store does not have them.
 * @throws NoHostError if no host responds; CoxswainError with the host's code if it cannot send them, or `query_failed`
 *   if it stops sending.
 */
export async function askLargeField(nc: NatsConnection, tenant: TenantId, sha256: string): Promise<Uint8Array | null> {
  for (let again = 1; ; again++) {
    const end = await ask(nc, subjects.largeField(tenant, sha256));
    if ('bytes' in end) return end.bytes;
    if (end.code === 'blob_missing') return null;
    if (end.code !== 'too_many_queries' || again === TRIES)
      throw new CoxswainError(end.code, `no host provided the large field ${sha256}: ${end.code}`);
    await new Promise((resolve) => setTimeout(resolve, delayAfter(again, AGAIN)));
  }
}

type End = { readonly bytes: Uint8Array } | { readonly code: string };

async function ask(nc: NatsConnection, subject: string): Promise<End> {
  const chunks: Uint8Array[] = [];
  let end: End = { code: 'query_failed' };
  const take = (message: Msg) => {
    const isChunk = message.data.length > 0;
    if (isChunk) chunks.push(message.data);
    else end = endOf(message, chunks);
    return !isChunk;
  };
  try {
    await wireOf(nc, SILENCE_MAX_MS).requestMany(subject, new Uint8Array(), take);
  } catch (error) {
    if (error instanceof NoRespondersError) throw new NoHostError();
    if (error instanceof NatsUnavailableError && !error.isFinal)
      throw new CoxswainError('query_failed', 'the host that provides it stopped responding', { cause: error });
    throw error;
  }
  return end;
}

function endOf({ headers }: Msg, chunks: readonly Uint8Array[]): End {
  const code = headers?.get(HEADERS.error);
  if (code) return { code };
  const bytes = Buffer.concat(chunks);
  return bytes.length === Number(headers?.get(HEADERS.total)) ? { bytes } : { code: 'query_failed' };
}
