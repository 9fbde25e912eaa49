/**
 * Hands out large fields by their hash. The store has those of all tenants side by side, and whoever may read there may list
 * them, so that clients of one of several tenants ask a host. Whoever knows a hash of 256 bits has been shown what refers to
 * it, or the bytes themselves.
 */
import type { Blobs, Log } from '@coxswain/ports';
import { HEADERS, parseLargeField, subjects } from '@coxswain/protocol';
import { headers, type Msg, type NatsConnection } from '@nats-io/nats-core';
import { answerAsHost } from './answer-as-host.ts';

/** Large fields that are being handed out at once, each of them in memory. */
const ANSWERING_MAX = 16;
/** Bytes of one answer. */
const CHUNK_BYTES = 256 * 1024;

/**
 * Answers until the returned function is called: the bytes in order, in messages of their own, then an empty one that says in
 * `Cox-Total` how many they were, or in `Cox-Error` why there are none (`blob_missing`, `too_many_queries`, `query_failed`).
 */
export function serveLargeFields(nc: NatsConnection, log: Log, blobs: Pick<Blobs, 'get'>): () => void {
  const answer = async (message: Msg): Promise<void> => {
    try {
      const sha256 = parseLargeField(message.subject);
      const bytes = sha256 === null ? null : await blobs.get(sha256);
      if (bytes === null) return end(message, HEADERS.error, 'blob_missing');
      for (let at = 0; at < bytes.length; at += CHUNK_BYTES) message.respond(bytes.subarray(at, at + CHUNK_BYTES));
      end(message, HEADERS.total, String(bytes.length));
    } catch (error) {
      log.warn({ subject: message.subject, error: (error as Error).message }, 'a large field was not handed out');
      if (!nc.isClosed()) end(message, HEADERS.error, 'query_failed');
    }
  };
  return answerAsHost(nc, {
    subject: subjects.largeFields,
    atOnce: ANSWERING_MAX,
    answer,
    full: (message) => end(message, HEADERS.error, 'too_many_queries'),
    failed: (error) => log.warn({ error }, 'large fields are not handed out'),
  });
}

function end(message: Msg, name: string, value: string): void {
  const head = headers();
  head.set(name, value);
  message.respond(new Uint8Array(), { headers: head });
}
