/**
 * Reads journals in pages. A page is read completely before any record is sent: a slow client does not occupy a read
 * slot, and the memory for it is bounded.
 */
import { type BusSession, JournalGapError, type JournalPlace } from '@coxswain/client';
import { storedRecords } from '@coxswain/client/transport';
import { sessionKey } from '@coxswain/protocol';
import type { Principal } from '../auth/mod.ts';
import { GATEWAY_BOUNDS, ReadShares } from '../context/mod.ts';
import { PageRooms } from './page-room.ts';
import { FeedItem } from './session-feed.ts';

/** The request for a page. */
export interface PageRequest {
  readonly session: BusSession;
  /** Number of the first record. */
  readonly from: number;
  readonly recordsMax: number;
  /** The page ends after the record with which it reaches this size. Large fields count. */
  readonly maxBytes: number;
}

/** Some records of a session, in order. */
export interface JournalPage {
  readonly records: readonly FeedItem[];
  /** Whether the journal has more records at the moment. */
  readonly more: boolean;
}

/** A page for a watcher. */
export interface HeldPage extends JournalPage {
  /** Call it when the page is written or given up. Further calls change nothing. */
  release(): void;
}

/**
 * Reads pages with limited concurrency. It remembers the stream sequence at the end of each page, so that the next page
 * starts there.
 */
export class JournalPages {
  readonly #reads: ReadShares;
  readonly #rooms: PageRooms;
  readonly #seqs = new Map<string, number>();

  /**
   * @param reads slots of requests.
   * @param rooms slots of watchers, and the memory of the pages that they hold.
   */
  constructor(
    reads: ReadShares = new ReadShares({ all: GATEWAY_BOUNDS.pageReadsMax }),
    rooms: PageRooms = new PageRooms(),
  ) {
    this.#reads = reads;
    this.#rooms = rooms;
  }

  /**
   * Reads a page for a request.
   * @param principal the client of the request.
   * @param signal ends the wait for a slot.
   * @throws the errors of reading the journal; Problem `gateway_busy` (503); the signal's reason.
   */
  read(request: PageRequest, principal: Principal, signal?: AbortSignal): Promise<JournalPage> {
    return this.#reads.run(principal, () => this.#read(request), signal);
  }

  /**
   * Reads a page for a watcher, which writes it at its own speed.
   * @param principal the client of the watcher.
   * @param signal ends the wait for a slot.
   * @throws as {@link read}.
   */
  async hold(request: PageRequest, principal: Principal, signal: AbortSignal): Promise<HeldPage> {
    const add = await this.#rooms.acquire(principal, signal);
    try {
      const page = await this.#read(request);
      // A WebSocket also needs a message of each, as large as the frame.
      const bytes = page.records.reduce((sum, item) => sum + item.bytes + item.frame.length, 0);
      return { ...page, release: add(bytes) };
    } catch (error) {
      add(0)();
      throw error;
    }
  }

  async #read(request: PageRequest): Promise<JournalPage> {
    const after = this.#placeBefore(request);
    const page = after === undefined ? null : await this.#pageAfter(request, after);
    return page ?? (await this.#page(request, undefined));
  }

  /**
   * Reads a page from a remembered position. Returns null if the position is invalid: the stream was recreated, and its
   * journal was restored or started again.
   */
  async #pageAfter(request: PageRequest, after: JournalPlace): Promise<JournalPage | null> {
    const { session, from } = request;
    try {
      const page = await this.#page(request, after);
      if (page.records.length > 0 || (await session.lastNumber()) < from) return page;
    } catch (error) {
      if (!(error instanceof JournalGapError)) throw error;
    }
    this.#seqs.delete(key(session, after.n));
    return null;
  }

  async #page(
    { session, from, recordsMax, maxBytes }: PageRequest,
    after: JournalPlace | undefined,
  ): Promise<JournalPage> {
    const records: FeedItem[] = [];
    let bytes = 0;
    let last: JournalPlace | null = null;
    let more = false;
    const atOnce = Math.min(recordsMax + 1, GATEWAY_BOUNDS.pageReadAhead);
    for await (const { record, size, seq } of storedRecords(session.journal({ from, after, atOnce }))) {
      if (records.length >= recordsMax || bytes >= maxBytes) {
        more = true;
        break;
      }
      records.push(new FeedItem(record));
      bytes += size;
      last = { n: record.n, seq };
    }
    if (last) this.#remember(session, last);
    return { records, more };
  }

  #placeBefore({ session, from }: PageRequest): JournalPlace | undefined {
    const seq = this.#seqs.get(key(session, from - 1));
    return seq === undefined ? undefined : { n: from - 1, seq };
  }

  #remember(session: BusSession, { n, seq }: JournalPlace): void {
    const at = key(session, n);
    this.#seqs.delete(at);
    this.#seqs.set(at, seq);
    if (this.#seqs.size > GATEWAY_BOUNDS.placesMax) {
      const [oldest] = this.#seqs.keys();
      if (oldest !== undefined) this.#seqs.delete(oldest);
    }
  }
}

function key({ ref }: BusSession, n: number): string {
  return `${sessionKey(ref)}/${n}`;
}

/** Reads a page for a watcher, from a record on. The signal ends the wait for a slot. */
export type PageReader = (from: number, signal: AbortSignal) => Promise<HeldPage>;

/** A function that reads the pages a watcher has missed. */
export function createPageReader(pages: JournalPages, session: BusSession, principal: Principal): PageReader {
  const { catchUpRecordsMax: recordsMax, catchUpMaxBytes: maxBytes } = GATEWAY_BOUNDS;
  return (from, signal) => pages.hold({ session, from, recordsMax, maxBytes }, principal, signal);
}
