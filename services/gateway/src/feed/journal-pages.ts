/**
 * Reads journals in pages. A page is read completely before any record is sent: a slow client does not occupy a read
 * slot, and the memory for it is bounded.
 */
import { type BusSession, JournalGapError, type JournalPlace } from '@coxswain/client';
import { storedRecords } from '@coxswain/client/transport';
import { type JournalRecord, sessionKey } from '@coxswain/protocol';
import { GATEWAY_BOUNDS, type LimitedReads } from '../context/mod.ts';

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
  readonly records: readonly JournalRecord[];
  /** Whether the journal has more records at the moment. */
  readonly more: boolean;
}

/**
 * Reads pages with limited concurrency. It remembers the stream sequence at the end of each page, so that the next page
 * starts there.
 */
export class JournalPages {
  readonly #reads: LimitedReads;
  readonly #seqs = new Map<string, number>();

  constructor(reads: LimitedReads) {
    this.#reads = reads;
  }

  /**
   * Reads a page.
   * @throws the errors of reading the journal; Problem `gateway_busy` (503).
   */
  read(request: PageRequest): Promise<JournalPage> {
    return this.#reads.run(async () => {
      const after = this.#placeBefore(request);
      const page = after === undefined ? null : await this.#pageAfter(request, after);
      return page ?? (await this.#page(request, undefined));
    });
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
    const records: JournalRecord[] = [];
    let bytes = 0;
    let last: JournalPlace | null = null;
    let more = false;
    const atOnce = Math.min(recordsMax + 1, GATEWAY_BOUNDS.pageReadAhead);
    for await (const { record, size, seq } of storedRecords(session.journal({ from, after, atOnce }))) {
      if (records.length >= recordsMax || bytes >= maxBytes) {
        more = true;
        break;
      }
      records.push(record);
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

/** A function that reads the pages a watcher has missed. */
export function createPageReader(pages: JournalPages, session: BusSession): (from: number) => Promise<JournalPage> {
  const { catchUpRecordsMax: recordsMax, catchUpMaxBytes: maxBytes } = GATEWAY_BOUNDS;
  return (from) => pages.read({ session, from, recordsMax, maxBytes });
}
