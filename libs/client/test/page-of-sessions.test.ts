/** Pages of sessions, while sessions change between them. */
import { expect, test } from 'vitest';
import type { ListPlace, PlacedSession } from '../src/newest-sessions.ts';
import { cursorOf } from '../src/page-cursor.ts';
import { LOOKED_AT_MAX, pageOf } from '../src/page-of-sessions.ts';
import type { ListQuery } from '../src/session-listing.ts';

/** An index in memory, and the sessions without an entry. Time is a counter. */
class Index {
  readonly entries = new Map<string, { seq: number; at: number }>();
  readonly unindexed = new Set<string>();
  read = 0;
  #now = 0;

  constructor(...ids: string[]) {
    for (const id of ids) this.move(id);
  }

  /** A step of a session: a record, and no entry. */
  step(id: string) {
    const entry = this.entries.get(id);
    if (entry) entry.at = ++this.#now;
  }

  /** A session wakes or leaves memory: a record, and another entry. */
  move(id: string) {
    this.unindexed.delete(id);
    const now = ++this.#now;
    this.entries.set(id, { seq: now, at: now });
  }

  async page(query: ListQuery) {
    const source = {
      list: async (after: ListPlace | null) => this.#list(after),
      since: async (seq: number) => this.#since(seq),
    };
    const { sessions, next_cursor } = await pageOf(source, query, () => Promise.reject(new Error('no host')));
    return { ids: sessions.map(({ session_id }) => session_id), cursor: next_cursor ?? undefined };
  }

  /** All pages; `between` runs after each. */
  async walk(query: ListQuery, between: (page: number) => void = () => undefined): Promise<string[]> {
    const seen: string[] = [];
    let cursor: string | undefined;
    for (let page = 1; ; page++) {
      const { ids, ...next } = await this.page({ ...query, cursor });
      seen.push(...ids);
      cursor = next.cursor;
      if (cursor === undefined) return seen;
      if (page > 500) throw new Error('the walk does not end');
      between(page);
    }
  }

  async *#list(after: ListPlace | null): AsyncGenerator<PlacedSession, void, undefined> {
    const places = [...this.entries].sort(([, one], [, other]) => other.seq - one.seq);
    for (const [id, { seq }] of places) if (!after || seq < after.seq) yield this.#placed(id, seq);
    for (const id of [...this.unindexed].sort().reverse())
      if (!after || after.seq > 0 || id < after.sessionId) yield this.#placed(id, 0);
  }

  #since(than: number): PlacedSession[] {
    const since = [...this.entries].filter(([, { seq }]) => seq > than).slice(0, LOOKED_AT_MAX);
    return since.map(([id, { seq }]) => this.#placed(id, seq));
  }

  #placed(sessionId: string, seq: number): PlacedSession {
    const listing = async () => {
      this.read++;
      const at = String(this.entries.get(sessionId)?.at ?? 0).padStart(9, '0');
      return { session_id: sessionId, n: 1, at, state: 'stopped', stop_reason: null } as const;
    };
    return { sessionId, seq, listing };
  }
}

const named = (count: number) => Array.from({ length: count }, (_, at) => `s${String(at).padStart(5, '0')}`);
const inOrder = (ids: readonly string[]) => [...ids].sort().reverse();

test.each([
  ['steps', 'step'],
  ['moves in the index', 'move'],
] as const)('each session is shown, although every session %s between two pages', async (_, change) => {
  const ids = named(40);
  const index = new Index(...ids);
  const seen = await index.walk({ limit: 5 }, () => {
    for (const id of ids) index[change](id);
  });
  expect(new Set(seen)).toEqual(new Set(ids));
  expect(seen.length).toBeLessThanOrEqual(2 * ids.length);
});

test('sessions that only step are shown once', async () => {
  const ids = named(250);
  const index = new Index(...ids);
  const seen = await index.walk({ limit: 7 }, (page) => index.step(ids[(page * 31) % ids.length] as string));
  expect(seen.toSorted()).toEqual(ids);
});

test.each([1, 30, 100, 500])('without changes, pages of %i show each session once, in order', async (limit) => {
  const ids = named(350);
  expect(await new Index(...ids).walk({ limit })).toEqual(inOrder(ids));
});

test('sessions without an entry follow last, and one that gets an entry meanwhile is not missing', async () => {
  const index = new Index('i1', 'i2');
  for (const id of ['u1', 'u2', 'u3']) index.unindexed.add(id);
  const seen = await index.walk({ limit: 1 }, (page) => {
    if (page === 3) index.move('u1');
  });
  expect(seen).toEqual(['i2', 'i1', 'u3', 'u2', 'u1']);
});

test('a page examines a bounded number of sessions, whatever its cursor says', async () => {
  const index = new Index(...named(LOOKED_AT_MAX + 5_000));
  const cursor = cursorOf(['index', '15000', '15000', '1', '']);
  const { ids, cursor: next } = await index.page({ limit: 1, cursor });
  expect([ids.length, next === undefined]).toEqual([1, false]);
  expect(index.read).toBeLessThan(LOOKED_AT_MAX + 50);
});

test('a page of a filter continues after the sessions that it has examined', async () => {
  const index = new Index(...named(LOOKED_AT_MAX + 500));
  expect(await index.walk({ limit: 5, state: 'failed' })).toEqual([]);
  expect(index.read).toBeLessThan(LOOKED_AT_MAX + 600);
});

test.each([
  ['another part', ['other', '9', '9', '1', '']],
  ['a start above its end', ['index', '9', '5', '6', '']],
  ['a range after the start of the walk', ['index', '5', '9', '1', '']],
  ['no range', ['index', '9', '0', '0', '']],
  ['a number that is too large', ['index', '9999999999999999', '5', '1', '']],
  ['a negative number', ['index', '9', '-1', '1', '']],
  ['shown sessions without a range', ['index', '9', '5', '0', '1']],
  ['shown sessions after the start of the walk', ['index', '9', '5', '1', 'zz']],
  ['shown sessions that are no numbers', ['index', '9', '5', '1', '1..1']],
  ['an invalid id', ['since', '9', '0', '0', '../x']],
  ['an id with a range', ['unindexed', '9', '5', '1', 's1']],
])('a cursor with %s is rejected', async (_, parts) => {
  const page = new Index('s1').page({ cursor: cursorOf(parts) });
  await expect(page).rejects.toMatchObject({ code: 'invalid_field', field: 'cursor' });
});

test('a cursor of a short page of many sessions has at most 2,048 characters', async () => {
  const index = new Index();
  for (const id of named(100)) {
    index.entries.set(id, { seq: index.entries.size * 40_000_000 + 1, at: index.entries.size });
  }
  let cursor: string | undefined;
  for (let page = 0; page < 99; page++) ({ cursor } = await index.page({ limit: 1, cursor }));
  expect(cursor?.length).toBeLessThanOrEqual(2_048);
});
