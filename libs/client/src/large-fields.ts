/** Large fields of records. Their bytes are in the object store, by SHA-256 hash. */
import { createHash } from 'node:crypto';
import { createStreamReader, NotPermittedError, retryRequest, StreamNotFoundError, wireOf } from '@coxswain/bus';
import {
  BLOBS_STREAM,
  blobRefsOf,
  decodeRecord,
  type JournalRecord,
  readStoredBlob,
  type TenantId,
} from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { askLargeField } from './ask-large-field.ts';

/**
 * Connections whose user may not read the object store. They are remembered, because the server logs each denied
 * request.
 */
const ASK_HOSTS = new WeakSet<NatsConnection>();

/** Decodes records and loads their large fields. One per reader. */
export class RecordDecoder {
  readonly #nc: NatsConnection;
  readonly #tenant: TenantId;

  constructor(nc: NatsConnection, tenant: TenantId) {
    this.#nc = nc;
    this.#tenant = tenant;
  }

  /**
   * Decodes a record and loads its large fields.
   * @returns the record, and its size in bytes with these fields.
   * @throws RecordUnreadableError for an invalid record, or if a large field is missing from the object store.
   */
  async decode(bytes: Uint8Array): Promise<{ readonly record: JournalRecord; readonly size: number }> {
    const refs = blobRefsOf(bytes);
    if (refs.length === 0) return { record: decodeRecord(bytes), size: bytes.length };
    const texts = new Map<string, string>();
    for (const sha256 of new Set(refs.map((ref) => ref.sha256))) {
      const found = await this.blob(sha256);
      if (found) texts.set(sha256, new TextDecoder().decode(found));
    }
    const record = decodeRecord(bytes, ({ sha256 }) => texts.get(sha256));
    return { record, size: refs.reduce((size, ref) => size + ref.bytes, bytes.length) };
  }

  /**
   * The bytes with a hash, or null.
   * @throws NoHostError if only hosts may read them and none responds; CoxswainError if the host or JetStream fails.
   */
  async blob(sha256: string): Promise<Uint8Array | null> {
    const found = ASK_HOSTS.has(this.#nc)
      ? await askLargeField(this.#nc, this.#tenant, sha256)
      : await this.#stored(sha256);
    // Bytes that do not match the hash are not used.
    return found && createHash('sha256').update(found).digest('hex') === sha256 ? found : null;
  }

  async #stored(sha256: string): Promise<Uint8Array | null> {
    const reader = createStreamReader(wireOf(this.#nc), BLOBS_STREAM);
    try {
      return await readStoredBlob(sha256, (subject, seq) => retryRequest(() => reader.leaderNext(subject, seq)));
    } catch (error) {
      // No session has run on this bus.
      if (error instanceof StreamNotFoundError) return null;
      if (!(error instanceof NotPermittedError)) throw error;
      ASK_HOSTS.add(this.#nc);
      return askLargeField(this.#nc, this.#tenant, sha256);
    }
  }
}
