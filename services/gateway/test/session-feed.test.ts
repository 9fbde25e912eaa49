/** The feed of a session: each watcher gets each record once and in order. */
import type { BusSession, JournalStart, WatchItem } from '@coxswain/client';
import type { Delta, JournalRecord } from '@coxswain/protocol';
import { expect, test, vi } from 'vitest';
import { createMetrics, GATEWAY_BOUNDS } from '../src/context/mod.ts';
import {
  createPageReader,
  type FeedItem,
  JournalPages,
  SessionFeed,
  SessionFeeds,
  watchFeed,
} from '../src/feed/mod.ts';

const WHO = { tenant: 'default', name: 'tester', scopes: new Set<never>(), expiresAt: null };

/** A session whose journal grows by the calls of a test. */
class GrowingSession {
  readonly stored: JournalRecord[] = [];
  readonly #live: WatchItem[] = [];
  #wake: () => void = () => undefined;
  readsOfJournal = 0;
  #answer = 1;
  #streamed = 0;

  readonly session = {
    ref: { tenant: 'default', sessionId: 's' },
    records: ({ signal }: { signal: AbortSignal }) => this.#watch(signal),
    journal: ({ from = 1 }: { from?: number }) => this.#journal(from),
  } as unknown as BusSession;

  record(more: object = {}): void {
    const record = { n: this.stored.length + 1, input: { type: 'owned', ...more } } as unknown as JournalRecord;
    this.stored.push(record);
    this.#live.push({ record });
    this.#wake();
  }

  /** The record with the running answer. Later deltas are those of the next one. */
  answer(): void {
    this.record({ type: 'model_outcome', effect_id: `${this.#answer}-0` });
    this.#answer++;
    this.#streamed = 0;
  }

  delta(text: string): void {
    const delta = {
      type: 'message_update',
      effect_id: `${this.#answer}-0`,
      epoch: 1,
      attempt: 1,
      kind: 'text',
      offset: this.#streamed,
      text,
    } as Delta;
    this.#streamed += text.length;
    this.#live.push({ delta });
    this.#wake();
  }

  async *#watch(signal: AbortSignal): AsyncGenerator<WatchItem> {
    const newest = this.stored.at(-1);
    this.#live.length = 0;
    if (newest) yield { record: newest };
    signal.addEventListener('abort', () => this.#wake());
    while (!signal.aborted) {
      const item = this.#live.shift();
      if (item) yield item;
      else
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
    }
  }

  async *#journal(from: number) {
    this.readsOfJournal++;
    for (const record of this.stored.slice(from - 1))
      yield { record, bytes: new Uint8Array(500), size: 500, seq: record.n * 3 };
  }
}

function sink() {
  const items: FeedItem[] = [];
  let gate: Promise<void> | null = null;
  let open: () => void = () => undefined;
  return {
    items,
    get numbers() {
      return items.flatMap(({ n }) => (n === null ? [] : [n]));
    },
    get text() {
      return items.map(({ delta }) => delta?.text ?? '').join('');
    },
    stall() {
      gate = new Promise((resolve) => {
        open = resolve;
      });
    },
    go() {
      open();
      gate = null;
    },
    async write(item: FeedItem) {
      await gate;
      items.push(item);
      return true;
    },
  };
}

const upTo = (count: number, from = 1) => Array.from({ length: count - from + 1 }, (_, i) => from + i);
const settled = async () => {
  for (let i = 0; i < 50; i++) await new Promise((resolve) => setImmediate(resolve));
};

function watching(feed: SessionFeed, growing: GrowingSession, from: JournalStart, deltas = true) {
  const leaving = new AbortController();
  const out = sink();
  const readPage = createPageReader(new JournalPages(), growing.session, WHO);
  const request = { from, deltas, signal: leaving.signal, readPage };
  return { out, leave: () => leaving.abort(), done: watchFeed(feed, out, request) };
}

test('each watcher gets past records and then new ones; the feed follows the journal once for all', async () => {
  const growing = new GrowingSession();
  for (let i = 0; i < 5; i++) growing.record();
  const feed = new SessionFeed(growing.session);
  const [one, other] = [watching(feed, growing, 1), watching(feed, growing, 4)];
  await settled();
  growing.delta('a');
  growing.record();
  await settled();
  expect(one.out.numbers).toEqual(upTo(6));
  expect(other.out.numbers).toEqual(upTo(6, 4));
  expect(one.out.items.at(-2)).toMatchObject({ n: null, delta: { text: 'a' } });
  expect(growing.readsOfJournal).toBe(2);
  one.leave();
  other.leave();
  await Promise.all([one.done, other.done]);
  feed.stop();
  await feed.done;
});

test('a watcher from the newest record on reads no journal', async () => {
  const growing = new GrowingSession();
  for (let i = 0; i < 5; i++) growing.record();
  const feed = new SessionFeed(growing.session);
  const first = watching(feed, growing, 'newest');
  await settled();
  growing.record();
  await settled();
  const later = watching(feed, growing, 'newest');
  await settled();
  expect(first.out.numbers).toEqual([5, 6]);
  expect(later.out.numbers).toEqual([6]);
  expect(growing.readsOfJournal).toBe(0);
  first.leave();
  later.leave();
  await Promise.all([first.done, later.done]);
  feed.stop();
  await feed.done;
});

test('a watcher that reconnects within the kept items reads no journal', async () => {
  const growing = new GrowingSession();
  growing.record();
  const feed = new SessionFeed(growing.session);
  const first = watching(feed, growing, 1);
  await settled();
  for (let i = 0; i < 20; i++) growing.record();
  await settled();
  first.leave();
  await first.done;
  const reads = growing.readsOfJournal;
  const again = watching(feed, growing, 11);
  await settled();
  expect(again.out.numbers).toEqual(upTo(21, 11));
  expect(growing.readsOfJournal).toBe(reads);
  again.leave();
  feed.stop();
  await Promise.all([again.done, feed.done]);
});

test('a watcher that is slower than the kept items continues in the journal without gap or repetition', async () => {
  const growing = new GrowingSession();
  growing.record();
  // Room for two records.
  const feed = new SessionFeed(growing.session, () => 2_500);
  const slow = watching(feed, growing, 1);
  await settled();
  slow.out.stall();
  for (let i = 0; i < 200; i++) {
    growing.record();
    growing.delta('x');
  }
  await settled();
  slow.out.go();
  await settled();
  growing.record();
  await settled();
  expect(slow.out.numbers).toEqual(upTo(202));
  slow.leave();
  feed.stop();
  await Promise.all([slow.done, feed.done]);
});

test('a running answer counts in the limit; beyond it, only watchers that join later lack its deltas', async () => {
  const growing = new GrowingSession();
  growing.record();
  const feed = new SessionFeed(growing.session, () => 40_000);
  const early = watching(feed, growing, 1);
  await settled();
  const piece = 'x'.repeat(1_000);
  for (let i = 0; i < 30; i++) {
    growing.delta(piece);
    await settled();
  }
  expect(feed.answerAfter(null).pieces).toEqual([]);
  const late = watching(feed, growing, 1);
  await settled();
  growing.answer();
  growing.delta('next');
  await settled();
  expect(early.out.text).toBe(`${piece.repeat(30)}next`);
  expect(late.out.text).toBe('next');
  for (const { out } of [early, late]) expect(out.numbers).toEqual([1, 2]);
  early.leave();
  late.leave();
  feed.stop();
  await Promise.all([early.done, late.done, feed.done]);
});

test('a quiet feed gives up items when more sessions are followed', async () => {
  const feeds = new SessionFeeds(createMetrics());
  const follow = (growing: GrowingSession, sessionId: string) =>
    feeds.join({ ...growing.session, ref: { tenant: 'default', sessionId } } as BusSession, WHO, 'sse').feed;
  const busy = new GrowingSession();
  const quiet = follow(busy, 'quiet');
  const text = 'x'.repeat(512 * 1024);
  for (let i = 0; i < 3; i++) busy.record({ text });
  await settled();
  expect(quiet.placeOf(1)).toBe(0);
  const { feedsMaxBytes, feedMaxBytes } = GATEWAY_BOUNDS;
  for (let i = 1; i < (4 * feedsMaxBytes) / feedMaxBytes; i++) follow(new GrowingSession(), `s${i}`);
  expect([1, 2, 3].map((n) => quiet.placeOf(n))).toEqual([null, null, 2]);
  // A record that exceeds the share is not kept.
  busy.record({ text: text.repeat(3) });
  await settled();
  expect([quiet.placeOf(4), quiet.placeOf(5), quiet.at(3)]).toEqual([null, 4, null]);
  await feeds.stop();
});

test('the sessions that one tenant follows do not take the memory of another one', async () => {
  const feeds = new SessionFeeds(createMetrics());
  const follow = (growing: GrowingSession, tenant: string, sessionId: string) => {
    const session = { ...growing.session, ref: { tenant, sessionId } } as BusSession;
    return feeds.join(session, { ...WHO, tenant }, 'sse');
  };
  const busy = new GrowingSession();
  const { feed } = follow(busy, 'red', 's');
  const text = 'x'.repeat(512 * 1024);
  for (let i = 0; i < 3; i++) busy.record({ text });
  const others = Array.from({ length: 500 }, (_, at) => follow(new GrowingSession(), 'blue', `s${at}`));
  await settled();
  expect([1, 2, 3].map((n) => feed.placeOf(n))).toEqual([0, 1, 2]);
  // Sessions that are no longer followed do not count.
  for (const { leave } of others) leave();
  for (let i = 0; i < 8; i++) follow(new GrowingSession(), 'red', `more${i}`);
  expect(feed.placeOf(1)).toBe(0);
  await feeds.stop();
});

test('the message of an item counts once a WebSocket needs it, while the item is kept', async () => {
  const growing = new GrowingSession();
  const feed = new SessionFeed(growing.session, () => 4_000);
  const text = 'x'.repeat(2_000);
  growing.record({ text });
  await settled();
  const first = feed.at(0);
  growing.record({ text });
  await settled();
  expect([feed.at(0), feed.at(1)]).toMatchObject([null, { n: 2 }]);
  // The first item is no longer kept, and the second one does not fit with its message.
  expect(first?.message).toBeDefined();
  expect(feed.at(1)?.message).toBeDefined();
  expect(feed.at(1)).toBeNull();
  growing.record({ text });
  await settled();
  expect(feed.at(2)).toMatchObject({ n: 3 });
  feed.stop();
  await feed.done;
});

test('a watcher from a future record waits for it, and gets deltas only on request', async () => {
  const growing = new GrowingSession();
  growing.record();
  const feed = new SessionFeed(growing.session);
  const ahead = watching(feed, growing, 4, false);
  await settled();
  for (let i = 0; i < 4; i++) {
    growing.delta('x');
    growing.record();
  }
  await settled();
  expect(ahead.out.items.map(({ n }) => n)).toEqual([4, 5]);
  ahead.leave();
  feed.stop();
  await Promise.all([ahead.done, feed.done]);
});

test('a watcher that joins within an answer, or reconnects, gets the text so far and then the rest', async () => {
  const pieces = ['a', 'bc', 'd', 'ef'];
  const growing = new GrowingSession();
  growing.record();
  const feed = new SessionFeed(growing.session);
  const watchers = [];
  for (const [at, piece] of [...pieces, null].entries()) {
    watchers.push(watching(feed, growing, 1), watching(feed, growing, 'newest'), watching(feed, growing, 3));
    await settled();
    for (const { out } of watchers) expect(out.text).toBe(pieces.slice(0, at).join(''));
    if (at === 2) growing.record();
    if (piece !== null) growing.delta(piece);
    await settled();
  }
  for (const { out } of watchers) expect(out.text).toBe(pieces.join(''));
  for (const { leave } of watchers) leave();
  feed.stop();
  await Promise.all([...watchers.map(({ done }) => done), feed.done]);
});

test('a watcher that writes a page slowly gives up its rest, and continues with another page', async () => {
  const growing = new GrowingSession();
  // Room for the newest record only.
  const feed = new SessionFeed(growing.session, () => 1_500);
  growing.record();
  await settled();
  growing.record();
  growing.record();
  await settled();
  const pages = new JournalPages();
  const held = vi.spyOn(pages, 'hold');
  let nowMs = 0;
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
  const leaving = new AbortController();
  const out = sink();
  const write = (item: FeedItem) => {
    nowMs += GATEWAY_BOUNDS.catchUpWithinMs;
    return out.write(item);
  };
  const readPage = createPageReader(pages, growing.session, WHO);
  const done = watchFeed(feed, { write }, { from: 1, deltas: false, signal: leaving.signal, readPage });
  await settled();
  clock.mockRestore();
  expect(out.numbers).toEqual([1, 2, 3]);
  expect(held.mock.calls.map(([{ from }]) => from)).toEqual([1, 2]);
  leaving.abort();
  feed.stop();
  await Promise.all([done, feed.done]);
});

test('a failure of the feed reaches its watchers', async () => {
  const broken = {
    async *records(): AsyncGenerator<WatchItem> {
      yield { record: { n: 1, input: { type: 'owned' } } as unknown as JournalRecord };
      throw new Error('the journal has a hole');
    },
    async *journal() {},
  } as unknown as BusSession;
  const feed = new SessionFeed(broken);
  const out = sink();
  const request = {
    from: 1,
    deltas: true,
    signal: new AbortController().signal,
    readPage: async () => ({ records: [], more: false, release() {} }),
  };
  await expect(watchFeed(feed, out, request)).rejects.toThrow('the journal has a hole');
});
