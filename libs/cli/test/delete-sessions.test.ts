/** Deleting what a command line names: what is asked about, and what is told before. */
import { createMemoryBus, createSystemClock } from '@coxswain/adapter-memory';
import { sessionRef } from '@coxswain/protocol';
import { expect, test, vi } from 'vitest';
import { deleteSessions } from '../src/journals/mod.ts';

test('where nothing can be deleted nobody is asked, and each is told why', async () => {
  const bus = createMemoryBus();
  try {
    const confirm = vi.fn(async () => true);
    const told: string[] = [];
    const done = await deleteSessions(
      { ...bus, clock: createSystemClock(), notifyHost: async () => undefined },
      ['nobody', 'nowhere'].map((id) => sessionRef(id)),
      {
        options: {},
        confirm,
        report: ({ sessionId }, deletion) =>
          told.push(`${sessionId} ${'code' in deletion ? deletion.code : deletion.status}`),
      },
    );
    expect(told).toEqual(['nobody session_not_found', 'nowhere session_not_found']);
    expect(done).toMatchObject({ status: 'done', refused: 2 });
    expect(confirm).not.toHaveBeenCalled();
  } finally {
    bus.close();
  }
});
