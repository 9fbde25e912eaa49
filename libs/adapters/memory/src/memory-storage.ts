/** Snapshots and blobs in memory. */
import type { Blobs, Clock, SessionSummary, Snapshots, StoredBlob } from '@coxswain/ports';
import { BOUNDS, partitionOf, type SessionRef, subjects } from '@coxswain/protocol';

/** Creates an empty snapshot store. It keeps the newest snapshot of each session. */
export function createMemorySnapshots(assertOpen: () => void): Snapshots & { delete(ref: SessionRef): void } {
  const newest = new Map<
    string,
    { readonly ref: SessionRef; readonly bytes: Uint8Array; readonly summary?: SessionSummary }
  >();
  return {
    async put(ref, bytes, summary) {
      assertOpen();
      newest.set(subjects.snapshot(ref), { ref, bytes: bytes.slice(), ...(summary ? { summary } : {}) });
    },
    async get(ref) {
      assertOpen();
      return newest.get(subjects.snapshot(ref))?.bytes ?? null;
    },
    async summaries(partition) {
      assertOpen();
      return [...newest.values()].flatMap(({ ref, summary }) =>
        summary && partitionOf(ref.sessionId) === partition ? { ref, summary } : [],
      );
    },
    delete(ref) {
      assertOpen();
      newest.delete(subjects.snapshot(ref));
    },
  };
}

/** Blobs in memory, with the operations that a {@link Purge} needs. */
export interface MemoryBlobs extends Blobs {
  list(): readonly StoredBlob[];
  /** Deletes a blob unless it was stored again in the meantime. @returns whether it was deleted. */
  delete(blob: StoredBlob): boolean;
}

/** Creates an empty blob store, by SHA-256 hash. */
export function createMemoryBlobs(clock: Pick<Clock, 'nowMs'>, assertOpen: () => void): MemoryBlobs {
  const byHash = new Map<string, StoredBlob & { readonly bytes: Uint8Array }>();
  let revision = 0;
  return {
    async put(sha256, bytes) {
      assertOpen();
      const there = byHash.get(sha256);
      const storedAtMs = clock.nowMs();
      if (there && storedAtMs - there.storedAtMs < BOUNDS.unusedBlobKeptMs / 2) return;
      byHash.set(sha256, { sha256, storedAtMs, revision: ++revision, bytes: there?.bytes ?? bytes.slice() });
    },
    async get(sha256) {
      assertOpen();
      return byHash.get(sha256)?.bytes ?? null;
    },
    list: () => [...byHash.values()].map(({ bytes: _, ...blob }) => blob),
    delete(blob) {
      assertOpen();
      return byHash.get(blob.sha256)?.revision === blob.revision && byHash.delete(blob.sha256);
    },
  };
}
