/** Deletes the sessions that a command line names. */
import { createMemoryBus, createSystemClock } from '@coxswain/adapter-memory';
import { sessionRef } from '@coxswain/protocol';
import { expect, test, vi } from 'vitest';
import { deleteSessions } from '../src/journals/mod.ts';

test('without a session to delete, there is no question, and each rejection is reported', async () => {
  const bus = createMemoryBus();
  try {
    const confirm = vi.fn(async () => true);
    const reported: string[] = [];
    const done = await deleteSessions(
      { ...bus, clock: createSystemClock(), notifyHost: async () => undefined },
      ['one', 'two'].map((id) => sessionRef(id)),
      {
        options: {},
        confirm,
        report: ({ sessionId }, deletion) =>
          reported.push(`${sessionId} ${'code' in deletion ? deletion.code : deletion.status}`),
      },
    );
    expect(reported).toEqual(['one session_not_found', 'two session_not_found']);
    expect(done).toMatchObject({ status: 'done', refused: 2 });
    expect(confirm).not.toHaveBeenCalled();
  } finally {
    bus.close();
  }
});
