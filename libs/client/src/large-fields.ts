/** Fields of records that were too large for their record: their bytes lie in the object store, by hash. */
import { createHash } from 'node:crypto';
import { BLOBS_STREAM, blobRefsOf, decodeRecord, type JournalRecord, readStoredBlob } from '@coxswain/protocol';
import { type JetStreamManager, jetstreamManager, type SeqMsgRequest } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/nats-core';
import { askStore } from './ask-store.ts';
import { isStreamNotFound } from './send-command.ts';

/** How long one request to the store may take. */
const READ_TIMEOUT_MS = 5_000;

/** Decodes records, fetching what lies apart. One per reader. */
export class RecordDecoder {
  readonly #nc: NatsConnection;
  #manager: Promise<JetStreamManager> | undefined;

  constructor(nc: NatsConnection) {
    this.#nc = nc;
  }

  /**
   * Reads a record's bytes, whole.
   * @throws RecordUnreadableError where it is no record, or a large field is not in the object store.
   */
  async decode(bytes: Uint8Array): Promise<JournalRecord> {
    const refs = blobRefsOf(bytes);
    if (refs.length === 0) return decodeRecord(bytes);
    const texts = new Map<string, string>();
    for (const { sha256 } of refs) {
      const found = await this.blob(sha256);
      if (found) texts.set(sha256, new TextDecoder().decode(found));
    }
    return decodeRecord(bytes, ({ sha256 }) => texts.get(sha256));
  }

  /** The bytes under a hash, or null. */
  async blob(sha256: string): Promise<Uint8Array | null> {
    this.#manager ??= jetstreamManager(this.#nc, { checkAPI: false, timeout: READ_TIMEOUT_MS });
    const { streams } = await this.#manager;
    try {
      const found = await readStoredBlob(sha256, (subject, seq) =>
        // The leader takes this question, too; the library's type knows of it for replicas only.
        askStore(() => streams.getMessage(BLOBS_STREAM, { next_by_subj: subject, seq } as SeqMsgRequest)),
      );
      // Under another hash they are other bytes, whoever put them there.
      return found && createHash('sha256').update(found).digest('hex') === sha256 ? found : null;
    } catch (error) {
      // No session has ever run on this bus.
      if (isStreamNotFound(error)) return null;
      throw error;
    }
  }
}
