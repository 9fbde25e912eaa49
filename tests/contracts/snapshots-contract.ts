import type { Snapshots } from '@coxswain/ports';
import { partitionOf } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { bytes, freshSession, text } from './fresh-session.ts';

/** What every store of snapshots promises. */
export function snapshotsContract(name: string, make: () => Snapshots): void {
  describe(`snapshots in ${name}`, () => {
    test('are not there before the first', async () => {
      expect(await make().get(freshSession())).toBeNull();
    });

    test('give the newest, per session', async () => {
      const snapshots = make();
      const [ref, other] = [freshSession(), freshSession()];
      for (const state of ['1', '2', '3']) await snapshots.put(ref, bytes(state));
      await snapshots.put(other, bytes('other'));
      expect(text((await snapshots.get(ref)) ?? bytes(''))).toBe('3');
      expect(text((await snapshots.get(other)) ?? bytes(''))).toBe('other');
    });

    test('give the newest summary of each session of a partition, and of no other', async () => {
      const snapshots = make();
      const [ref, plain, unsummarized] = [freshSession(), freshSession(), freshSession()];
      const partition = partitionOf(ref.sessionId);
      const waits = { state: 'function_awaiting_approval', approvals: 2, oldestApprovalMs: 1_700_000_000_000 };
      const stopped = { state: 'stopped', approvals: 0, oldestApprovalMs: null };
      await snapshots.put(ref, bytes('1'), stopped);
      await snapshots.put(ref, bytes('2'), waits);
      await snapshots.put(plain, bytes('3'), stopped);
      await snapshots.put(unsummarized, bytes('4'));
      const of = async (partitions: number) =>
        (await snapshots.summaries(partitions)).filter((one) =>
          [ref, plain, unsummarized].some(({ sessionId }) => sessionId === one.ref.sessionId),
        );
      const here = partitionOf(plain.sessionId) === partition ? [{ ref: plain, summary: stopped }] : [];
      expect(await of(partition)).toEqual(expect.arrayContaining([{ ref, summary: waits }, ...here]));
      expect(await of(partition)).toHaveLength(1 + here.length);
      if (here.length === 0) expect(await of(partitionOf(plain.sessionId))).toEqual([{ ref: plain, summary: stopped }]);
    });

    test('keep a snapshot of the size that a session at all its bounds has, with its summary', async () => {
      const snapshots = make();
      const ref = freshSession();
      const large = bytes('x'.repeat(4 * 1024 * 1024));
      const summary = { state: 'stopped', approvals: 0, oldestApprovalMs: null };
      await snapshots.put(ref, large, summary);
      expect(Buffer.compare((await snapshots.get(ref)) ?? bytes(''), large)).toBe(0);
      expect(await snapshots.summaries(partitionOf(ref.sessionId))).toContainEqual({ ref, summary });
      await snapshots.put(ref, bytes('small again'), summary);
      expect(text((await snapshots.get(ref)) ?? bytes(''))).toBe('small again');
    });

    test('keep bytes that the writer then uses for something else', async () => {
      const snapshots = make();
      const ref = freshSession();
      const buffer = bytes('kept');
      await snapshots.put(ref, buffer);
      buffer.fill(0);
      expect(text((await snapshots.get(ref)) ?? buffer)).toBe('kept');
    });
  });
}
