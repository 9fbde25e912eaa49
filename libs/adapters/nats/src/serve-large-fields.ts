/**
 * Serves large fields by their SHA-256 hash. The object store contains the fields of all tenants, and permission to
 * read it includes permission to list it. So with several tenants, clients ask a host instead. A client that knows a
 * 256-bit hash has seen the record that refers to the field, or the bytes themselves.
 */
import type { Blobs, Log } from '@coxswain/ports';
import { HEADERS, parseLargeField, subjects } from '@coxswain/protocol';
import { headers, type Msg, type NatsConnection } from '@nats-io/nats-core';
import { answerAsHost } from './answer-as-host.ts';

/** Maximum number of large fields that one host serves at the same time. Each is in memory. */
const CONCURRENT_MAX = 16;
/** Maximum bytes of one reply message. */
const CHUNK_BYTES = 256 * 1024;

/**
 * Answers requests until the returned function is called. The reply is a sequence of messages with the bytes in order.
 * An empty message ends it, with the number of bytes in the header `Cox-Total`, or an error code in `Cox-Error`:
 * `blob_missing`, `too_many_queries` or `query_failed`.
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
      log.warn({ subject: message.subject, error: (error as Error).message }, 'a large field was not sent');
      if (!nc.isClosed()) end(message, HEADERS.error, 'query_failed');
    }
  };
  return answerAsHost(nc, {
    subject: subjects.largeFields,
    atOnce: CONCURRENT_MAX,
    answer,
    full: (message) => end(message, HEADERS.error, 'too_many_queries'),
    failed: (error) => log.warn({ error }, 'large fields are not served'),
  });
}

function end(message: Msg, name: string, value: string): void {
  const head = headers();
  head.set(name, value);
  message.respond(new Uint8Array(), { headers: head });
}
