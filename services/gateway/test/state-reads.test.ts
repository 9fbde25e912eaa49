/** Runs that follow the same session share the reads of its state. */
import type { BusSession } from '@coxswain/client';
import { expect, test, vi } from 'vitest';
import { stateAfter } from '../src/agui/mod.ts';
import type { SessionFeed } from '../src/feed/mod.ts';

function sessionThatWaits() {
  const answers: { readonly resolve: (status: object) => void; readonly reject: (error: Error) => void }[] = [];
  const read = vi.fn((_n: number) => new Promise<object>((resolve, reject) => answers.push({ resolve, reject })));
  return { read, answers, session: { wire: { stateAfter: read } } as unknown as BusSession, feed: {} as SessionFeed };
}

test('a read in progress is shared by all runs at its record or before', async () => {
  const { read, answers, session, feed } = sessionThatWaits();
  const shared = [7, 7, 6].map((n) => stateAfter(feed, session, n));
  const later = stateAfter(feed, session, 8);
  const other = stateAfter({} as SessionFeed, session, 7);
  expect(read.mock.calls.map(([n]) => n)).toEqual([7, 8, 7]);
  for (const [at, { resolve }] of answers.entries()) resolve({ at });
  expect(await Promise.all([...shared, later, other])).toEqual([0, 0, 0, 1, 2].map((at) => ({ at })));
});

test('a read that has ended is not shared', async () => {
  const { read, answers, session, feed } = sessionThatWaits();
  const failed = stateAfter(feed, session, 7);
  answers[0]?.reject(new Error('no host'));
  await expect(failed).rejects.toThrow('no host');
  const second = stateAfter(feed, session, 7);
  answers[1]?.resolve({ n: 7 });
  expect(await second).toEqual({ n: 7 });
  void stateAfter(feed, session, 7);
  expect(read).toHaveBeenCalledTimes(3);
});
