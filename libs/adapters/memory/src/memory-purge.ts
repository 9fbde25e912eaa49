/** The purge port in memory. */
import type { Clock, Purge } from '@coxswain/ports';
import { type SessionRef, tombstoneIn } from '@coxswain/protocol';
import type { MemoryJournal } from './memory-journal.ts';
import type { MemoryBlobs } from './memory-storage.ts';

/** The stores that a purge deletes from, and their clock. */
export interface PurgedStores {
  readonly journal: MemoryJournal;
  readonly snapshots: { delete(ref: SessionRef): void };
  readonly timers: { delete(ref: SessionRef): void };
  readonly blobs: MemoryBlobs;
  readonly clock: Pick<Clock, 'nowMs'>;
}

/** The only key of a place: all journals share one sequence. */
const POSITION = 'memory';

/** Creates the purge port over the stores of one bus. */
export function createMemoryPurge({ journal, snapshots, timers, blobs, clock }: PurgedStores): Purge {
  return {
    check: async () => undefined,
    journalBefore: async (ref, fence) => journal.deleteBefore(ref, fence),
    hasBefore: async (ref, fence) => ((await journal.firstAfter(ref, 0))?.fence ?? fence) < fence,
    snapshots: async (ref) => snapshots.delete(ref),
    timers: async (ref) => timers.delete(ref),
    nowMs: async () => clock.nowMs(),
    async deletedSince(place) {
      const all = [...journal.all()];
      const end = Math.max(0, ...all.map(({ fence }) => fence)) + 1;
      const found = all.filter(({ fence }) => place !== null && fence >= (place[POSITION] ?? 0));
      const refs = found.flatMap(({ ref, bytes }) => (tombstoneIn(bytes) ? [ref] : []));
      return { place: { [POSITION]: end }, refs, isAtEnd: true };
    },
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
