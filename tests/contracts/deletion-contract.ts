import { createHash, randomBytes } from 'node:crypto';
import type { ActiveSessions, Blobs, Clock, Journal, Purge, Snapshots, StoredBlob, Timers } from '@coxswain/ports';
import { BOUNDS, JOURNAL_STREAMS, journalStreamOf, type SessionRef, tombstoneIn } from '@coxswain/protocol';
import { deleteSession, sweepBlobs } from '@coxswain/session';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { bytes, freshSession, text } from './fresh-session.ts';

/** The stores of one bus, and another door to its journals: a host's. */
export interface DeletionStores {
  readonly journal: Journal;
  readonly other: Journal;
  readonly snapshots: Snapshots;
  readonly blobs: Blobs;
  readonly timers: Timers;
  readonly active: ActiveSessions;
  readonly purge: Purge;
  readonly clock: Clock;
}

const DAY_MS = 24 * 3_600_000;
const hashOf = (data: Uint8Array) => createHash('sha256').update(data).digest('hex');

/** The same clock for whoever is in a hurry: seconds that deletion waits for forks under way are moments. */
const hurried = (clock: Clock): Clock => ({
  ...clock,
  monotonicMs: () => clock.monotonicMs() * 50,
  sleep: (ms, signal) => clock.sleep(ms / 50, signal),
});

/** Records as far as deletion reads them. */
const recordText = (ref: SessionRef, n: number, sha256?: string) =>
  JSON.stringify({
    v: 1,
    session_id: ref.sessionId,
    n,
    epoch: 1,
    attempt: 'h',
    prev_hash: '0'.repeat(64),
    at: '2030-01-01T00:00:00.000Z',
    input: { type: 'owned', epoch: 1, host: 'h' },
    events: [],
    state: 'stopped',
    effects_open: [],
    ...(sha256 === undefined ? {} : { extra: { sha256, bytes: 1 } }),
  });

/** What deleting promises of every set of stores. */
export function deletionContract(name: string, stores: () => DeletionStores): void {
  const portsOf = (all: DeletionStores) => ({ ...all, clock: hurried(all.clock), notifyHost: async () => undefined });
  const written = async (journal: Journal, ref: SessionRef, texts: readonly string[]) => {
    let fence = 0;
    for (const one of texts) {
      const result = await journal.append(ref, bytes(one), fence);
      if (result.status !== 'stored') throw new Error(`an append was ${result.status}`);
      fence = result.fence;
    }
    return fence;
  };
  const session = async (all: DeletionStores, records = 3) => {
    const ref = freshSession();
    const fence = await written(
      all.journal,
      ref,
      Array.from({ length: records }, (_, i) => recordText(ref, i + 1)),
    );
    return { ref, fence };
  };
  /** A session whose records are in the journal stream at this place. */
  const sessionIn = (place: number): SessionRef => {
    const ref = freshSession();
    return journalStreamOf(ref.sessionId) === JOURNAL_STREAMS.at(place) ? ref : sessionIn(place);
  };
  /** The same stores, where something happens as soon as this text is in a record that a sweep reads. */
  const interrupted = (purge: Purge, text: string, happens: () => Promise<void>): Purge => ({
    ...purge,
    async *records() {
      let isDue = true;
      for await (const data of purge.records()) {
        yield data;
        if (!isDue || !Buffer.from(data).includes(text)) continue;
        isDue = false;
        await happens();
      }
    },
  });
  const recordsOf = async (journal: Journal, ref: SessionRef, upTo?: number) => {
    const found: Uint8Array[] = [];
    for await (const { bytes: data } of journal.read(ref, 0, upTo)) found.push(data);
    return found;
  };
  const blobOf = async (purge: Purge, sha256: string): Promise<StoredBlob | null> => {
    for await (const blob of purge.blobs()) if (blob.sha256 === sha256) return blob;
    return null;
  };
  /** The same stores, as they would be found so much later. */
  const later = (purge: Purge, ms: number): Purge => ({ ...purge, nowMs: async () => (await purge.nowMs()) + ms });

  describe(`deletion in ${name}`, () => {
    afterEach(() => {
      vi.restoreAllMocks();
    });

    test('leaves the tombstone alone, and nothing of another session goes', async () => {
      const all = stores();
      const [one, two] = [await session(all), await session(all)];
      for (const { ref } of [one, two]) {
        await all.snapshots.put(ref, bytes('s'));
        await all.snapshots.put(ref, bytes('t'));
      }
      expect(await deleteSession(portsOf(all), one.ref)).toMatchObject({ status: 'deleted' });
      const left = await recordsOf(all.other, one.ref);
      expect(left.map((data) => tombstoneIn(data)?.records)).toEqual([3]);
      // Also whoever read where its newest record stood is told.
      expect(await recordsOf(all.other, one.ref, one.fence)).toEqual(left);
      expect(await all.snapshots.get(one.ref)).toBeNull();
      expect(await recordsOf(all.other, two.ref)).toHaveLength(3);
      expect(text((await all.snapshots.get(two.ref)) ?? bytes(''))).toBe('t');
    });

    test('lists what is deleted behind a place, each session once', async () => {
      const all = stores();
      const [before, one, two] = [await session(all), await session(all), await session(all)];
      await deleteSession(portsOf(all), before.ref);
      let { place } = await all.purge.deletedSince(null);
      const listed: string[] = [];
      for (const { ref } of [one, two]) {
        await deleteSession(portsOf(all), ref);
        await session(all);
        for (let isAtEnd = false; !isAtEnd; ) {
          const read = await all.purge.deletedSince(place);
          listed.push(...read.refs.map(({ sessionId }) => sessionId));
          ({ place, isAtEnd } = read);
        }
      }
      expect(listed).toEqual([one.ref.sessionId, two.ref.sessionId]);
    });

    test('refuses whoever appends behind the fence that they had, and whoever begins the session anew', async () => {
      const all = stores();
      const { ref, fence } = await session(all);
      await deleteSession(portsOf(all), ref);
      expect(await all.other.append(ref, bytes('late'), fence)).toEqual({ status: 'refused' });
      expect(await all.other.append(ref, bytes('anew'), 0)).toEqual({ status: 'refused' });
      const found = await all.other.firstAfter(ref, fence);
      expect(found && tombstoneIn(found.bytes)?.session_id).toBe(ref.sessionId);
      const listed: string[] = [];
      for await (const { sessionId } of all.journal.sessions('default')) listed.push(sessionId);
      expect(listed).toContain(ref.sessionId);
    });

    test('leaves one tombstone, also where it is begun several times side by side', async () => {
      const all = stores();
      const { ref } = await session(all);
      const results = await Promise.all([1, 2, 3].map(() => deleteSession(portsOf(all), ref)));
      expect(results.map(({ status }) => status)).toContain('deleted');
      expect(await recordsOf(all.journal, ref)).toHaveLength(1);
      expect(await deleteSession(portsOf(all), ref)).toMatchObject({ status: 'refused', code: 'session_deleted' });
    });

    test('takes the session’s timers away that are still to come', async () => {
      const all = stores();
      const { ref } = await session(all);
      await all.timers.schedule(ref, 't1', Date.now() + DAY_MS, bytes('x'));
      await all.timers.schedule(ref, 't2', Date.now() + DAY_MS, bytes('x'));
      expect(await deleteSession(portsOf(all), ref)).toMatchObject({ status: 'deleted' });
      await all.purge.timers(ref);
    });

    test('knows the tenants that there are', async () => {
      const all = stores();
      const ref = freshSession('somebody');
      await written(all.journal, ref, ['a']);
      expect(await all.purge.tenants()).toContain('somebody');
    });

    test('a blob goes that no record refers to, and one that is referred to stays', async () => {
      const all = stores();
      const [used, unused] = [randomBytes(300_000), randomBytes(300_000)];
      for (const data of [used, unused]) await all.blobs.put(hashOf(data), data);
      const ref = freshSession();
      await written(all.journal, ref, [recordText(ref, 1, hashOf(used))]);
      const only = new Set([hashOf(used), hashOf(unused)]);
      expect(await sweepBlobs(all.purge, { only })).toEqual({ deleted: 0, used: 0, left: 2 });
      const purge = later(all.purge, BOUNDS.unusedBlobKeptMs + DAY_MS);
      expect(await sweepBlobs(purge, { only })).toEqual({ deleted: 1, used: 1, left: 0 });
      expect(await all.blobs.get(hashOf(unused))).toBeNull();
      expect(hashOf((await all.blobs.get(hashOf(used))) ?? bytes(''))).toBe(hashOf(used));
      expect(await blobOf(all.purge, hashOf(unused))).toBeNull();
      // And it may come again.
      await all.blobs.put(hashOf(unused), unused);
      expect(hashOf((await all.blobs.get(hashOf(unused))) ?? bytes(''))).toBe(hashOf(unused));
    });

    test('a blob of a fork stays that is made, and whose origin is purged, while a sweep reads', async () => {
      const all = stores();
      const data = randomBytes(1_000);
      await all.blobs.put(hashOf(data), data);
      const [fork, sentinel, origin] = [sessionIn(0), sessionIn(1), sessionIn(-1)];
      await written(all.journal, sentinel, [recordText(sentinel, 1)]);
      const fence = await written(all.journal, origin, [recordText(origin, 1, hashOf(data)), recordText(origin, 2)]);
      const purge = interrupted(later(all.purge, 2 * BOUNDS.unusedBlobKeptMs), sentinel.sessionId, async () => {
        await written(all.journal, fork, [recordText(fork, 1, hashOf(data))]);
        await all.purge.journalBefore(origin, fence);
      });
      const only = new Set([hashOf(data)]);
      expect(await sweepBlobs(purge, { only })).toEqual({ deleted: 0, used: 1, left: 0 });
    });

    test('a sweep succeeds while other records of a stream are purged, and later ones appended', async () => {
      const all = stores();
      const data = randomBytes(1_000);
      await all.blobs.put(hashOf(data), data);
      // More than one read returns.
      const [first, long, purged] = [sessionIn(0), sessionIn(0), sessionIn(0)];
      await written(all.journal, first, [recordText(first, 1)]);
      await written(
        all.journal,
        long,
        Array.from({ length: 300 }, (_, i) => recordText(long, i + 1)),
      );
      await written(all.journal, purged, [recordText(purged, 1), recordText(purged, 2)]);
      const purge = interrupted(later(all.purge, 2 * BOUNDS.unusedBlobKeptMs), first.sessionId, async () => {
        await deleteSession(portsOf(all), purged);
        const another = sessionIn(0);
        await written(all.journal, another, [recordText(another, 1), recordText(another, 2)]);
      });
      const only = new Set([hashOf(data)]);
      expect(await sweepBlobs(purge, { only })).toEqual({ deleted: 1, used: 0, left: 0 });
    });

    test('a blob that is stored again after half of the time counts as new, and is not deleted as it was found', async () => {
      const all = stores();
      const data = randomBytes(200_000);
      const sha256 = hashOf(data);
      await all.blobs.put(sha256, data);
      const found = (await blobOf(all.purge, sha256)) as StoredBlob;
      await all.blobs.put(sha256, data);
      expect((await blobOf(all.purge, sha256))?.revision).toBe(found.revision);
      vi.spyOn(Date, 'now').mockReturnValue(Date.now() + BOUNDS.unusedBlobKeptMs / 2 + 1_000);
      await all.blobs.put(sha256, data);
      vi.restoreAllMocks();
      expect((await blobOf(all.purge, sha256))?.revision).not.toBe(found.revision);
      expect(await all.purge.blob(found)).toBe(false);
      expect(hashOf((await all.blobs.get(sha256)) ?? bytes(''))).toBe(sha256);
    });

    test('a blob that is stored while it is deleted is there afterwards, each of many times', async () => {
      const all = stores();
      const data = randomBytes(150_000);
      const sha256 = hashOf(data);
      for (let round = 0; round < 10; round++) {
        await all.blobs.put(sha256, data);
        const found = (await blobOf(all.purge, sha256)) as StoredBlob;
        vi.spyOn(Date, 'now').mockReturnValue(Date.now() + BOUNDS.unusedBlobKeptMs);
        await Promise.all([all.purge.blob(found), all.blobs.put(sha256, data), all.blobs.put(sha256, data)]);
        vi.restoreAllMocks();
        expect(hashOf((await all.blobs.get(sha256)) ?? bytes(''))).toBe(sha256);
      }
    });
  });
}
