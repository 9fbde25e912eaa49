/** Snapshots on a stream, and blobs in an object store. */
import { createHash } from 'node:crypto';
import { createStreamReader, NatsUnavailableError, type StoredMessage, storeMessage, wireOf } from '@coxswain/bus';
import type { Blobs, Clock, Snapshots } from '@coxswain/ports';
import { BLOB_SUBJECTS, BLOBS_STREAM, BOUNDS, readAbout, readStoredBlob, STREAMS, subjects } from '@coxswain/protocol';
import { MsgHdrsImpl, type NatsConnection } from '@nats-io/nats-core';
import { type ObjectStore, Objm } from '@nats-io/obj';
import { readSummaries, summaryHeaders } from './session-summaries.ts';

/**
 * Maximum bytes of a snapshot that is stored in its message: well below the servers' default `max_payload` of 1 MiB.
 */
const SNAPSHOT_INLINE_MAX_BYTES = 512 * 1024;
/** Header with the SHA-256 hash (hex) of a large snapshot. The message is empty; the bytes are in the object store. */
const APART = 'Cox-Snapshot-Blob';

/**
 * Creates the snapshot port on this connection. Snapshots are read from any replica: after an older one, a session only
 * replays more records. A large snapshot is stored in the object store. No record refers to it, so the retention job
 * deletes it there after a day; then the session has no snapshot. Methods throw NatsUnavailableError, NatsRefusedError.
 */
export function createNatsSnapshots(nc: NatsConnection, blobs: Blobs = createNatsBlobs(nc)): Snapshots {
  const wire = wireOf(nc);
  const reader = createStreamReader(wire, STREAMS.snapshots);
  return {
    async put(ref, given, summary) {
      let bytes = given;
      let headers = summary && summaryHeaders(summary);
      if (given.length > SNAPSHOT_INLINE_MAX_BYTES) {
        const sha256 = createHash('sha256').update(given).digest('hex');
        await blobs.put(sha256, given);
        headers ??= MsgHdrsImpl.fromRecord({});
        headers.set(APART, sha256);
        bytes = new Uint8Array();
      }
      await storeMessage(nc, 'storing a snapshot', subjects.snapshot(ref), bytes, headers ?? undefined);
    },
    async get(ref) {
      const message = await reader.last(subjects.snapshot(ref));
      const apart = message?.headers.get(APART);
      return apart ? blobs.get(apart) : (message?.data ?? null);
    },
    summaries: (partition) => readSummaries(nc, partition),
  };
}

/** Maximum attempts to renew a blob against concurrent changes. After them, the blob is stored again. */
const RENEWALS_MAX = 4;

/**
 * The headers of a message that replaces the message at `seq`. The server rejects it if the subject has a newer one.
 */
export function fencedRollup(seq: number): MsgHdrsImpl {
  const head = { 'Nats-Rollup': ['sub'], 'Nats-Expected-Last-Subject-Sequence': [String(seq)] };
  return MsgHdrsImpl.fromRecord(head) as MsgHdrsImpl;
}

/**
 * Creates the blob port on this connection. Each blob is an object named by its hash. Methods throw
 * NatsUnavailableError.
 * @param clock the store's clock, which also decides when an unreferenced blob is deleted. By the wall clock of a machine
 *   that is hours behind, an old blob would not be renewed, and be deleted before a record refers to it.
 */
export function createNatsBlobs(nc: NatsConnection, clock: Pick<Clock, 'nowMs'> = { nowMs: () => Date.now() }): Blobs {
  let opening: Promise<ObjectStore> | null = null;
  const store = (): Promise<ObjectStore> => {
    opening ??= new Objm(nc).open(STREAMS.blobs).catch((error: unknown) => {
      // The next call tries again.
      opening = null;
      throw new NatsUnavailableError(`the object store cannot be opened: ${String(error)}`, { cause: error });
    });
    return opening;
  };
  const reader = createStreamReader(wireOf(nc), BLOBS_STREAM);
  /**
   * Renews the age of a blob by rewriting its metadata.
   * @returns false if another client changed or deleted the blob first.
   */
  const renewed = async ({ subject, seq, data }: StoredMessage): Promise<boolean> => {
    return (await storeMessage(nc, 'renewing a blob', subject, data, fencedRollup(seq))) !== null;
  };
  return {
    async put(sha256, bytes) {
      const objects = await store();
      for (let tries = 0; tries < RENEWALS_MAX; tries++) {
        const about = await reader.leaderLast(BLOB_SUBJECTS.about(sha256));
        if (!about || readAbout(about.data).deleted) break;
        if (clock.nowMs() - about.timeMs < BOUNDS.unusedBlobKeptMs / 2 || (await renewed(about))) return;
      }
      await answered(objects.putBlob({ name: sha256 }, bytes));
    },
    async get(sha256) {
      // A lagging replica may not have the message yet; the leader has it.
      const next = async (subject: string, seq: number) =>
        (await reader.next(subject, seq)) ?? reader.leaderNext(subject, seq);
      const bytes = await answered(readStoredBlob(sha256, next));
      if (bytes && createHash('sha256').update(bytes).digest('hex') !== sha256)
        throw new NatsUnavailableError(`the object store holds other bytes under ${sha256}`);
      return bytes;
    },
  };
}

async function answered<T>(operation: Promise<T>): Promise<T> {
  try {
    return await operation;
  } catch (cause) {
    throw new NatsUnavailableError(`the object store does not answer: ${(cause as Error).message}`, { cause });
  }
}
