/** Approvals of sessions below the one that is followed. */
import { expect, test } from 'vitest';
import { ChildApprovals } from '../src/child-approvals.ts';
import type { Session, UiEvent } from '../src/mod.ts';

test('a child is read when its stored commands are processed: they may decide what its journal shows as open', async () => {
  const done: string[] = [];
  const child = {
    newest: async () => void done.push('read'),
    async *records() {},
  } as unknown as Session;
  const children = new ChildApprovals({
    sessionOf: () => child,
    untilProcessed: async (id) => {
      await Promise.resolve();
      done.push(`${id} taken`);
    },
    saw: () => undefined,
    lost: () => undefined,
  });
  children.add({ type: 'child_started', session: 's-2', persona: 'editor' } as UiEvent);
  children.begin();
  await expect.poll(() => done).toEqual(['s-2 taken', 'read']);
  children.close();
});
