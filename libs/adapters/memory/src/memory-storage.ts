/** Snapshots and blobs in memory. */
import type { Blobs, Snapshots } from '@coxswain/ports';
import { subjects } from '@coxswain/protocol';

/** Snapshots, the newest of each session. */
export function createMemorySnapshots(assertOpen: () => void): Snapshots {
  const newest = new Map<string, Uint8Array>();
  return {
    async put(ref, bytes) {
      assertOpen();
      newest.set(subjects.snapshot(ref), bytes.slice());
    },
    async get(ref) {
      assertOpen();
      return newest.get(subjects.snapshot(ref)) ?? null;
    },
  };
}

/** Blobs by hash. */
export function createMemoryBlobs(assertOpen: () => void): Blobs {
  const byHash = new Map<string, Uint8Array>();
  return {
    async put(sha256, bytes) {
      assertOpen();
      if (!byHash.has(sha256)) byHash.set(sha256, bytes.slice());
    },
    async get(sha256) {
      assertOpen();
      return byHash.get(sha256) ?? null;
    },
  };
}
