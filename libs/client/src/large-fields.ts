/** Fields of records that were too large for their record: their bytes lie in the object store, by hash. */
import { createHash } from 'node:crypto';
import { blobRefsOf, decodeRecord, type JournalRecord, STREAMS } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { type ObjectStore, Objm } from '@nats-io/obj';
import { streamIsMissing } from './send-command.ts';

/** Decodes records, fetching what lies apart. One per reader. */
export class RecordDecoder {
  readonly #nc: NatsConnection;
  #store: Promise<ObjectStore | null> | undefined;

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
    this.#store ??= openStore(this.#nc);
    const store = await this.#store;
    // It may be made later, by the first host.
    if (!store) this.#store = undefined;
    const found = await store?.getBlob(sha256);
    // Under another hash they are other bytes, whoever put them there.
    return found && createHash('sha256').update(found).digest('hex') === sha256 ? found : null;
  }
}

/** The object store, or null on a bus that has none, which no session has ever run on. */
async function openStore(nc: NatsConnection): Promise<ObjectStore | null> {
  try {
    return await new Objm(nc).open(STREAMS.blobs);
  } catch (error) {
    if (await streamIsMissing({ nc }, `OBJ_${STREAMS.blobs}`)) return null;
    throw error;
  }
}
