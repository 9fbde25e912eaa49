/** The purge port in memory. */
import type { Clock, Purge } from '@coxswain/ports';
import type { SessionRef } from '@coxswain/protocol';
import type { MemoryJournal } from './memory-journal.ts';
import type { MemoryBlobs } from './memory-storage.ts';

/** What it takes away from. */
export interface PurgedStores {
  readonly journal: MemoryJournal;
  readonly snapshots: { delete(ref: SessionRef): void };
  readonly timers: { delete(ref: SessionRef): void };
  readonly blobs: MemoryBlobs;
  readonly clock: Pick<Clock, 'nowMs'>;
}

/** Makes it over the stores of one bus. */
export function createMemoryPurge({ journal, snapshots, timers, blobs, clock }: PurgedStores): Purge {
  return {
    check: async () => undefined,
    journalBefore: async (ref, fence) => journal.deleteBefore(ref, fence),
    hasBefore: async (ref, fence) => ((await journal.firstAfter(ref, 0))?.fence ?? fence) < fence,
    snapshots: async (ref) => snapshots.delete(ref),
    timers: async (ref) => timers.delete(ref),
    nowMs: async () => clock.nowMs(),
    tenants: async () => journal.tenants(),
    async *records() {
      for (const { bytes } of journal.all()) yield bytes;
    },
    async *blobs() {
      yield* blobs.list();
    },
    blob: async (blob) => blobs.delete(blob),
  };
}
