import type { Snapshots } from '@coxswain/ports';
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
