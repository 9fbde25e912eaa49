/** Pages of a journal, also after the store was created anew. */
import { type BusSession, JournalGapError, type JournalPlace } from '@coxswain/client';
import type { JournalRecord } from '@coxswain/protocol';
import { expect, onTestFinished, test, vi } from 'vitest';
import { GATEWAY_BOUNDS, LimitedReads, ReadShares } from '../src/context/mod.ts';
import { type HeldPage, JournalPages, PageRoom, PageRooms } from '../src/feed/mod.ts';

const principal = (name: string) => ({ name, tenant: 'default', scopes: new Set(['read' as const]), expiresAt: null });
const [ALICE, BOB] = [principal('alice'), principal('bob')];

/** A store with a journal of six records, whose sequences are `apart` from each other. */
function storeOf(apart: number) {
  const store = { apart, readsFromTheBeginning: 0 };
  async function* journal({ from, after }: { readonly from: number; readonly after?: JournalPlace }) {
    if (after === undefined) store.readsFromTheBeginning++;
    const stored = [1, 2, 3, 4, 5, 6].map((n) => ({ n, seq: n * store.apart }));
    const [first, ...rest] = stored.filter(({ seq }) => seq > (after?.seq ?? 0));
    const begins = (after?.n ?? 0) + 1;
    if (first && first.n !== begins) throw new JournalGapError('s', begins, first.n);
    for (const { n, seq } of first ? [first, ...rest] : [])
      if (n >= from) yield { record: { n, input: {} } as JournalRecord, bytes: new Uint8Array(10), size: 400, seq };
  }
  const session = {
    ref: { tenant: 'default', sessionId: 's' },
    journal,
    lastNumber: async () => 6,
  } as unknown as BusSession;
  // Watchers hold one page of three records.
  const pages = new JournalPages(
    new ReadShares({ all: 1 }),
    new PageRooms(new PageRoom(3_000, new LimitedReads(1, 9))),
  );
  const numbersFrom = async (from: number, recordsMax = 2) => {
    const { records } = await pages.read({ session, from, recordsMax, maxBytes: 1_000 }, ALICE);
    return records.map(({ n }) => n);
  };
  return { store, session, pages, numbersFrom };
}

test('a page starts at the end of an earlier page without another read from the beginning', async () => {
  const { store, numbersFrom } = storeOf(3);
  expect([await numbersFrom(1), await numbersFrom(3), await numbersFrom(5)]).toEqual([
    [1, 2],
    [3, 4],
    [5, 6],
  ]);
  expect(store.readsFromTheBeginning).toBe(1);
});

test('a page ends at its size in bytes, with the large fields of its records', async () => {
  const { numbersFrom } = storeOf(3);
  expect(await numbersFrom(1, 6)).toEqual([1, 2, 3]);
});

test('a page after the end of the journal is empty, without another read from the beginning', async () => {
  const { store, numbersFrom } = storeOf(3);
  await numbersFrom(5);
  expect(await numbersFrom(7)).toEqual([]);
  expect(store.readsFromTheBeginning).toBe(1);
});

test('a watcher waits for room while others hold their pages; requests do not wait', async () => {
  const { session, pages, numbersFrom } = storeOf(3);
  const request = { session, from: 1, recordsMax: 3, maxBytes: 10_000 };
  const staying = new AbortController().signal;
  const first = await pages.hold(request, ALICE, staying);
  const left = new AbortController();
  const leaving = pages.hold(request, ALICE, left.signal);
  let second: HeldPage | undefined;
  const waiting = pages.hold(request, ALICE, staying).then((page) => {
    second = page;
  });
  left.abort(new Error('left'));
  await expect(leaving).rejects.toThrow('left');
  expect(await numbersFrom(1)).toEqual([1, 2]);
  expect(second).toBeUndefined();
  first.release();
  first.release();
  await waiting;
  expect(second?.records).toHaveLength(3);
});

test('a watcher that finds no room in time is rejected', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const { session, pages } = storeOf(3);
  const request = { session, from: 1, recordsMax: 3, maxBytes: 10_000 };
  const { signal } = new AbortController();
  await pages.hold(request, ALICE, signal);
  const refused = expect(pages.hold(request, ALICE, signal)).rejects.toMatchObject({ code: 'gateway_busy' });
  await vi.advanceTimersByTimeAsync(GATEWAY_BOUNDS.catchUpWithinMs);
  await refused;
});

test.each([
  ['a principal', 1 / 4, BOB],
  ['a tenant', 1 / 2, { ...BOB, tenant: 'other' }],
])('%s whose watchers hold many pages does not affect another one', async (_whose, small, other) => {
  const { session } = storeOf(3);
  const roomOf = (share: number) => new PageRoom(share === small ? 1 : 1_000_000, new LimitedReads(1, 9));
  const rooms = new PageRooms(new PageRoom(1_000_000), roomOf);
  const pages = new JournalPages(new ReadShares({ all: 1 }), rooms);
  const request = { session, from: 1, recordsMax: 3, maxBytes: 10_000 };
  const { signal } = new AbortController();
  const first = await pages.hold(request, ALICE, signal);
  let isSecondRead = false;
  const second = pages.hold(request, ALICE, signal).then(() => {
    isSecondRead = true;
  });
  expect((await pages.hold(request, other, signal)).records).toHaveLength(3);
  expect(isSecondRead).toBe(false);
  first.release();
  await second;
});

test.each([
  ['another record', 2],
  ['nothing', 1],
])('a store that now has %s at the remembered place is read from the beginning once', async (_what, apart) => {
  const { store, numbersFrom } = storeOf(3);
  expect(await numbersFrom(1)).toEqual([1, 2]);
  store.apart = apart;
  expect(await numbersFrom(3)).toEqual([3, 4]);
  expect(await numbersFrom(1)).toEqual([1, 2]);
  store.readsFromTheBeginning = 0;
  expect(await numbersFrom(3)).toEqual([3, 4]);
  expect(store.readsFromTheBeginning).toBe(0);
});
