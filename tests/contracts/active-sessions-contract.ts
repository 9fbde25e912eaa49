import type { ActiveSessions } from '@coxswain/ports';
import { partitionOf, type SessionRef } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { freshSession } from './fresh-session.ts';

/** What every store of notes of active sessions promises. */
export function activeSessionsContract(name: string, active: () => ActiveSessions): void {
  const noteOf = async (ref: SessionRef) => {
    const notes = await active().list(partitionOf(ref.sessionId));
    return notes.filter((note) => note.ref.sessionId === ref.sessionId && note.ref.tenant === ref.tenant);
  };

  describe(`active sessions in ${name}`, () => {
    test('stand in their partition with their host, and in no other', async () => {
      const ref = freshSession();
      const revision = await active().note(ref, 'host-a');
      expect(await noteOf(ref)).toEqual([{ ref, host: 'host-a', revision }]);
      const elsewhere = await active().list((partitionOf(ref.sessionId) + 1) % 64);
      expect(elsewhere.map((note) => note.ref.sessionId)).not.toContain(ref.sessionId);
    });

    test('have one note each, the newest', async () => {
      const ref = freshSession();
      const first = await active().note(ref, 'host-a');
      const second = await active().note(ref, null);
      expect(second).toBeGreaterThan(first);
      expect(await noteOf(ref)).toEqual([{ ref, host: null, revision: second }]);
    });

    test('are forgotten where no other note has come since', async () => {
      const ref = freshSession();
      await active().forget(ref, await active().note(ref, 'host-a'));
      expect(await noteOf(ref)).toEqual([]);
      const stale = await active().note(ref, 'host-a');
      const newest = await active().note(ref, 'host-b');
      await active().forget(ref, stale);
      expect(await noteOf(ref)).toEqual([{ ref, host: 'host-b', revision: newest }]);
    });

    test('may be many', async () => {
      const refs = Array.from({ length: 600 }, () => freshSession());
      const same = refs.filter((ref) => partitionOf(ref.sessionId) === partitionOf(refs[0]?.sessionId as string));
      await Promise.all(refs.map((ref) => active().note(ref, 'host-a')));
      const listed = (await active().list(partitionOf(refs[0]?.sessionId as string))).map(({ ref }) => ref.sessionId);
      expect(listed).toEqual(expect.arrayContaining(same.map(({ sessionId }) => sessionId)));
    });
  });
}
