import type { Journal, StoredRecord } from '@coxswain/ports';
import { BOUNDS, partitionOf, type SessionRef } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { bytes, freshSession, text } from './fresh-session.ts';

/** A journal under test: the same store through two doors, as two hosts would have it. */
export interface JournalDoors {
  readonly journal: Journal;
  readonly other: Journal;
}

/** What every journal promises. */
export function journalContract(name: string, doors: () => JournalDoors): void {
  describe(`a journal in ${name}`, () => {
    test('stores records at the fence of the one before', async () => {
      const { journal } = doors();
      const ref = freshSession();
      const fences = await appendAll(journal, ref, ['a', 'b', 'c']);
      expect(await textsOf(journal.read(ref))).toEqual(['a', 'b', 'c']);
      expect(fences).toEqual([...fences].sort((x, y) => x - y));
      expect(new Set(fences).size).toBe(3);
    });

    test('refuses a wrong fence and writes nothing', async () => {
      const { journal } = doors();
      const ref = freshSession();
      expect(await journal.append(ref, bytes('early'), 1)).toEqual({ status: 'refused' });
      const [first = 0] = await appendAll(journal, ref, ['a']);
      expect(await journal.append(ref, bytes('again'), 0)).toEqual({ status: 'refused' });
      expect(await journal.append(ref, bytes('ahead'), first + 1)).toEqual({ status: 'refused' });
      expect(await textsOf(journal.read(ref))).toEqual(['a']);
    });

    test('lets one of two competing writers win', async () => {
      const { journal, other } = doors();
      const ref = freshSession();
      const [fence = 0] = await appendAll(journal, ref, ['a']);
      const results = await Promise.all([
        journal.append(ref, bytes('mine'), fence),
        other.append(ref, bytes('theirs'), fence),
      ]);
      expect(results.map(({ status }) => status).sort()).toEqual(['refused', 'stored']);
      const winner = results[0].status === 'stored' ? 'mine' : 'theirs';
      expect(await textsOf(other.read(ref, fence))).toEqual([winner]);
      expect(text((await journal.firstAfter(ref, fence))?.bytes ?? bytes(''))).toBe(winner);
    });

    test('settles an append whose answer was lost to one record, when the identical bytes are sent again', async () => {
      const { journal } = doors();
      const ref = freshSession();
      const [fence = 0] = await appendAll(journal, ref, ['a']);
      // This answer never reached the writer.
      await journal.append(ref, bytes('b'), fence);
      expect(await journal.append(ref, bytes('b'), fence)).toEqual({ status: 'refused' });
      const settled = await journal.firstAfter(ref, fence);
      expect(text(settled?.bytes ?? bytes(''))).toBe('b');
      const next = await journal.append(ref, bytes('c'), settled?.fence ?? -1);
      expect(next.status).toBe('stored');
      expect(await textsOf(journal.read(ref))).toEqual(['a', 'b', 'c']);
    });

    test('keeps any bytes as they are', async () => {
      const { journal } = doors();
      const ref = freshSession();
      const any = new Uint8Array([0, 255, 254, 13, 10, 0, 128]);
      await journal.append(ref, any, 0);
      expect([...((await journal.last(ref))?.bytes ?? [])]).toEqual([...any]);
    });

    test('keeps bytes that the writer then uses for something else', async () => {
      const { journal } = doors();
      const ref = freshSession();
      const buffer = bytes('kept');
      await journal.append(ref, buffer, 0);
      buffer.fill(0);
      expect(text((await journal.last(ref))?.bytes ?? buffer)).toBe('kept');
    });

    test('takes a record at the bound and none over it', async () => {
      const { journal } = doors();
      const ref = freshSession();
      const largest = new Uint8Array(BOUNDS.recordMaxBytes).fill(97);
      const stored = await journal.append(ref, largest, 0);
      expect(stored.status).toBe('stored');
      const fence = stored.status === 'stored' ? stored.fence : -1;
      await expect(journal.append(ref, new Uint8Array(BOUNDS.recordMaxBytes + 1), fence)).rejects.toMatchObject({
        code: 'record_too_large',
      });
      const last = await journal.last(ref);
      expect(last?.fence).toBe(fence);
      expect(last?.bytes.length).toBe(BOUNDS.recordMaxBytes);
    });

    test('keeps sessions apart while many are written side by side', async () => {
      const { journal } = doors();
      const refs = Array.from({ length: 40 }, () => freshSession());
      await Promise.all(
        refs.map((ref) =>
          appendAll(
            journal,
            ref,
            ['1', '2', '3', '4', '5'].map((n) => n + ref.sessionId),
          ),
        ),
      );
      for (const ref of refs) {
        expect(await textsOf(journal.read(ref))).toEqual(['1', '2', '3', '4', '5'].map((n) => n + ref.sessionId));
      }
    });

    test('reads what comes after a fence, up to the newest', async () => {
      const { journal } = doors();
      const ref = freshSession();
      const fences = await appendAll(journal, ref, ['a', 'b', 'c']);
      expect(await textsOf(journal.read(ref, fences[0]))).toEqual(['b', 'c']);
      expect(await textsOf(journal.read(ref, fences[2]))).toEqual([]);
      expect((await journal.last(ref))?.fence).toBe(fences[2]);
      expect((await journal.firstAfter(ref, fences[1] ?? 0))?.fence).toBe(fences[2]);
      expect(await journal.firstAfter(ref, fences[2] ?? 0)).toBeNull();
    });

    test('reads up to a record that is known', async () => {
      const { journal } = doors();
      const ref = freshSession();
      const fences = await appendAll(journal, ref, ['a', 'b', 'c', 'd']);
      expect(await textsOf(journal.read(ref, 0, fences[1]))).toEqual(['a', 'b']);
      expect(await textsOf(journal.read(ref, fences[0], fences[2]))).toEqual(['b', 'c']);
      expect(await textsOf(journal.read(ref, fences[1], fences[1]))).toEqual([]);
      expect(await textsOf(journal.read(ref, 0, fences[3]))).toEqual(['a', 'b', 'c', 'd']);
    });

    test('reads a long journal whole and in order', async () => {
      const { journal, other } = doors();
      const ref = freshSession();
      const texts = Array.from({ length: 700 }, (_, i) => `record ${i}`);
      const fences = await appendAll(journal, ref, texts);
      expect(await textsOf(other.read(ref))).toEqual(texts);
      expect(await textsOf(other.read(ref, 0, fences[599]))).toEqual(texts.slice(0, 600));
    });

    test('has nothing of an unknown session', async () => {
      const { journal } = doors();
      const ref = freshSession();
      expect(await textsOf(journal.read(ref))).toEqual([]);
      expect(await journal.last(ref)).toBeNull();
      expect(await journal.firstAfter(ref, 0)).toBeNull();
    });

    test('lists the sessions of a tenant and of no other', async () => {
      const { journal } = doors();
      const tenant = `t-${freshSession().sessionId}`.slice(0, 40);
      const mine = [freshSession(tenant), freshSession(tenant)];
      const foreign = freshSession(`${tenant}x`);
      for (const ref of [...mine, foreign]) await appendAll(journal, ref, ['a', 'b']);
      const listed: string[] = [];
      for await (const ref of journal.sessions(tenant)) listed.push(`${ref.tenant} ${ref.sessionId}`);
      expect(listed.sort()).toEqual(mine.map((ref) => `${ref.tenant} ${ref.sessionId}`).sort());
      const first = mine[0] as SessionRef;
      const inPartition: SessionRef[] = [];
      for await (const ref of journal.sessionsOf(partitionOf(first.sessionId))) inPartition.push(ref);
      expect(inPartition).toContainEqual(first);
      expect(inPartition.filter(({ sessionId }) => partitionOf(sessionId) !== partitionOf(first.sessionId))).toEqual(
        [],
      );
    });
  });
}

async function appendAll(journal: Journal, ref: SessionRef, texts: readonly string[]): Promise<number[]> {
  const fences: number[] = [];
  for (const one of texts) {
    const result = await journal.append(ref, bytes(one), fences.at(-1) ?? 0);
    if (result.status !== 'stored') throw new Error(`an append was ${result.status}`);
    fences.push(result.fence);
  }
  return fences;
}

async function textsOf(records: AsyncIterable<StoredRecord>): Promise<string[]> {
  const texts: string[] = [];
  for await (const record of records) texts.push(text(record.bytes));
  return texts;
}
