/** Lists of sessions, page by page. */
import type { ListPlace, PlacedSession, WireSessionListing } from '@coxswain/client';
import { describe, expect, test } from 'vitest';
import { pageOf, pageOfSessions } from '../src/journals/mod.ts';

const all = ['e5', 'd4', 'c3', 'b2', 'a1'].map((session_id) => ({ session_id }));
const ids = (limit: number, after?: string) => {
  const { items, left } = pageOf(all, { limit, after });
  return [items.map(({ session_id }) => session_id), left];
};

test('a page starts after the last entry of the page before, and counts the entries that are left', () => {
  expect(ids(2)).toEqual([['e5', 'd4'], 3]);
  expect(ids(2, 'd4')).toEqual([['c3', 'b2'], 1]);
  expect(ids(2, 'b2')).toEqual([['a1'], 0]);
  expect(ids(2, 'a1')).toEqual([[], 0]);
  expect(ids(100)).toEqual([['e5', 'd4', 'c3', 'b2', 'a1'], 0]);
});

test('a page repeats entries if the session before it has moved to the top meanwhile', () => {
  const moved = [{ session_id: 'd4' }, ...all.filter(({ session_id }) => session_id !== 'd4')];
  expect(pageOf(moved, { limit: 9, after: 'd4' }).items.map(({ session_id }) => session_id)).toEqual([
    'e5',
    'c3',
    'b2',
    'a1',
  ]);
});

test('a page may start after a prefix of an id; an unknown id is rejected', () => {
  expect(ids(1, 'c')).toEqual([['b2'], 1]);
  expect(() => ids(1, 'x')).toThrow('session_not_found');
});

test('a start that was rejected has no record: it is no deleted session', async () => {
  const stopped = { n: 1, at: '2026-01-01T00:00:00.000Z', state: 'stopped', stop_reason: null } as const;
  const listings: Record<string, WireSessionListing | null> = {
    kept: { session_id: 'kept', ...stopped },
    rejected: null,
    gone: { session_id: 'gone', ...stopped, state: 'deleted', deleted: { by: null, reason: null } },
  };
  async function* sessions(): AsyncGenerator<PlacedSession, void, undefined> {
    for (const [sessionId, listing] of Object.entries(listings))
      yield { sessionId, seq: 1, listing: async () => listing };
  }
  const few = {
    sessionIds: async () => Object.keys(listings),
    placeInList: async (sessionId: string) => ({ sessionId, seq: 1 }),
    newestSessions: async () => ({ total: 3, left: 3, sessions: sessions() }),
  };
  const page = (deleted: boolean) => pageOfSessions(few, few, { limit: 9, after: undefined, deleted });
  expect(await page(false)).toMatchObject({ unlisted: 1, total: 2, left: 0 });
  expect(await page(true)).toMatchObject({ unlisted: 0, total: 2, left: 0 });
});

describe('of many sessions', () => {
  const many = Array.from({ length: 2_000 }, (_, at) => `s${String(9_999 - at)}`);
  const deleted = new Set(['s9998', 's9996']);
  const listingOf = (session_id: string): WireSessionListing => ({
    session_id,
    n: 1,
    at: '2026-01-01T00:00:00.000Z',
    state: deleted.has(session_id) ? 'deleted' : 'stopped',
    stop_reason: null,
    ...(deleted.has(session_id) ? { deleted: { by: null, reason: null } } : {}),
  });
  function client() {
    const read: string[] = [];
    async function* sessions(after: ListPlace | null): AsyncGenerator<PlacedSession, void, undefined> {
      for (const sessionId of many.slice(after ? many.indexOf(after.sessionId) + 1 : 0)) {
        const listing = async () => {
          read.push(sessionId);
          return listingOf(sessionId);
        };
        yield { sessionId, seq: Number(sessionId.slice(1)), listing };
      }
    }
    return {
      read,
      sessionIds: async () => [...many],
      placeInList: async (sessionId: string) => ({ sessionId, seq: 1 }),
      newestSessions: async (after: ListPlace | null = null) => ({
        total: many.length,
        left: after ? many.length - many.indexOf(after.sessionId) - 1 : many.length,
        sessions: sessions(after),
      }),
    };
  }

  test('a page reads only its own sessions and the deleted ones between them', async () => {
    const asked = client();
    const page = await pageOfSessions(asked, asked, { limit: 3, after: undefined, deleted: false });
    expect(page.items.map(({ session_id }) => session_id)).toEqual(['s9999', 's9997', 's9995']);
    expect(page).toMatchObject({ left: 1_995, unlisted: 2, total: 2_000, last: 's9995' });
    expect(asked.read.length).toBeLessThanOrEqual(16);
  });

  test('the next page starts after the last entry, and contains deleted sessions on request', async () => {
    const asked = client();
    const page = await pageOfSessions(asked, asked, { limit: 3, after: 's9999', deleted: true });
    expect(page.items.map(({ session_id }) => session_id)).toEqual(['s9998', 's9997', 's9996']);
    expect(page).toMatchObject({ left: 1_996, unlisted: 0 });
    expect(asked.read.length).toBeLessThanOrEqual(16);
  });

  test('a large limit lists all of them', async () => {
    const asked = client();
    const page = await pageOfSessions(asked, asked, { limit: 100_000, after: undefined, deleted: false });
    expect(page).toMatchObject({ left: 0, unlisted: 2, total: 2_000 });
    expect(page.items).toHaveLength(1_998);
  });
});
