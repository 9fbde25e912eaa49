/**
 * The sessions of a tenant, the most recently changed first, read from the session index (INDEX-1 to INDEX-3 in
 * `libs/ports/src/session-index.ts`). They are in the order of their index entries. A host writes an entry when a
 * session wakes, when a run of a live session starts, and when it passivates the session.
 *
 * LIST-1  The index is read from its end, in windows of some hundred entries, and only as far as the reader iterates.
 * LIST-2  A session without an entry is still listed. After the last entry, the ids of journals and entries are
 *         compared, and the others follow by id. The counts of the streams cannot tell: they include other tenants, and
 *         marks of sessions that were never started.
 * LIST-3  A replica that serves fewer entries than it reports is not trusted. Other replicas are read, and then the
 *         list fails.
 */
import {
  createStreamReader,
  dropConsumer,
  nullIfNoStream,
  type OrderedSource,
  retryRequest,
  storedMessages,
  streamInfo,
  wireOf,
} from '@coxswain/bus';
import {
  JOURNAL_STREAMS,
  parseSessionEntry,
  RecordNotServedError,
  SessionIndexEntry,
  type SessionRef,
  STREAMS,
  sessionRef,
  subjects,
  type TenantId,
} from '@coxswain/protocol';
import { type Consumer, DeliverPolicy, type JsMsg, type StreamInfo } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/nats-core';
import { openConsumer, readApart, sessionIds, storedSubjects } from './read-journal.ts';
import { type IndexedSession, listingFrom, unreadableListing, type WireListedSession } from './session-listing.ts';

/** The position of a session in a list. */
export interface ListPlace {
  readonly sessionId: string;
  /** The sequence number of its entry in the index; 0 without an entry. */
  readonly seq: number;
}

/** A session in a list. */
export interface PlacedSession extends ListPlace {
  /** Reads the listing of the session: its entry, or its newest record. Null if the session has no records. */
  readonly listing: () => Promise<IndexedSession | null>;
}

/** A list of sessions, the most recently changed first. */
export interface NewestSessions {
  /**
   * The number of sessions of the tenant, including deleted ones. Sessions without an entry are included only if the
   * streams report more journals than entries.
   */
  readonly total: number;
  /** The number of sessions from the start position on, counted like `total`. */
  readonly left: number;
  /** The sessions. Iterate it once, as far as needed. */
  readonly sessions: AsyncGenerator<PlacedSession, void, undefined>;
}

/** Entries of the first window: enough for a page of the default size and some deleted sessions. */
const WINDOW = { least: 64, wanted: 192, most: 384 } as const;
/** Each further window is larger by this factor, up to a maximum: to find a window takes longer than to read it. */
const GROWTH = { factor: 4, max: 64 } as const;
/** The maximum number of reads before a list fails (LIST-3). */
const REPLICA_TRIES = 8;
/** The batch size of a read; entries are small. */
const AT_ONCE = 1_000;

/**
 * Opens a list. It is empty on a bus without sessions.
 * @param after The list starts after this position; null: at the newest session.
 * @throws NatsUnavailableError.
 * @internal
 */
export async function newestSessions(
  nc: NatsConnection,
  tenant: TenantId,
  after: ListPlace | null = null,
): Promise<NewestSessions> {
  // Journals are counted first: a session that starts meanwhile writes its entry before its first record.
  const journals = await Promise.all(JOURNAL_STREAMS.map((stream) => infoOf(nc, stream)));
  const index = await infoOf(nc, STREAMS.sessions);
  const withJournal = journals.reduce((sum, info) => sum + (info?.state.num_subjects ?? 0), 0);
  const entries = index && index.state.messages > 0 ? new Entries(nc, tenant, index.state) : null;
  const indexed = entries ? await entries.countFrom(1) : 0;
  const end = after?.seq ?? Number.POSITIVE_INFINITY;
  const above = !entries || end > entries.lastSeq ? 0 : end === 0 ? indexed : await entries.countFrom(end);
  const counted = withJournal > (index?.state.num_subjects ?? 0) ? await withoutEntry(nc, tenant) : null;
  const isLeft = (id: string) => end > 0 || id < (after?.sessionId ?? '');
  async function* listed(): AsyncGenerator<PlacedSession, void, undefined> {
    if (entries && end > 0) yield* entries.below(Math.min(end, entries.lastSeq + 1), above, indexed);
    for (const sessionId of (counted ?? (await withoutEntry(nc, tenant))).filter(isLeft))
      yield { sessionId, seq: 0, listing: () => newestListing(nc, sessionRef(sessionId, tenant)) };
  }
  const others = counted ?? [];
  return {
    total: indexed + others.length,
    left: indexed - above + others.filter(isLeft).length,
    sessions: listed(),
  };
}

/**
 * Reads the sessions with an entry after a sequence number, in no order: those that woke, left memory or started since.
 * No session is missing that had an entry after it when the call began.
 * @param max The maximum number of entries to read; then the newest ones are missing.
 * @throws NatsUnavailableError; RecordNotServedError as in LIST-3.
 * @internal
 */
export async function sessionsSince(
  nc: NatsConnection,
  tenant: TenantId,
  seq: number,
  max: number,
): Promise<readonly PlacedSession[]> {
  const index = await infoOf(nc, STREAMS.sessions);
  if (!index || index.state.last_seq <= seq) return [];
  return new Entries(nc, tenant, index.state).after(seq, max);
}

/**
 * The position of a session in the list; null if the index does not contain it.
 * @throws NatsUnavailableError.
 * @internal
 */
export async function placeInList(nc: NatsConnection, { tenant, sessionId }: SessionRef): Promise<ListPlace | null> {
  const reader = createStreamReader(wireOf(nc), STREAMS.sessions);
  const entry = await retryRequest(() => reader.last(subjects.sessionEntry({ tenant, sessionId })));
  return entry && { sessionId, seq: entry.seq };
}

/** The state of a stream; null if it does not exist. */
function infoOf(nc: NatsConnection, stream: string): Promise<StreamInfo | null> {
  return nullIfNoStream(retryRequest(() => streamInfo(nc, stream)));
}

/** The ids of sessions with a journal and without an entry, in descending order. */
async function withoutEntry(nc: NatsConnection, tenant: TenantId): Promise<string[]> {
  const ids = new Set(await sessionIds(nc, tenant));
  for (const subject of await storedSubjects(nc, STREAMS.sessions, subjects.tenantEntries(tenant)))
    ids.delete(parseSessionEntry(subject)?.sessionId as string);
  return [...ids].sort().reverse();
}

/** The entries in a range of the stream. */
interface Window {
  readonly from: number;
  readonly consumer: Consumer;
  readonly source: OrderedSource;
  /** The number of entries in the range, as reported by the replica that is read. */
  readonly count: number;
}

/** The index entries of a tenant. */
class Entries {
  readonly #nc: NatsConnection;
  readonly #tenant: TenantId;
  readonly #firstSeq: number;
  readonly lastSeq: number;

  constructor(nc: NatsConnection, tenant: TenantId, state: StreamInfo['state']) {
    this.#nc = nc;
    this.#tenant = tenant;
    this.#firstSeq = state.first_seq;
    this.lastSeq = state.last_seq;
  }

  /** Counts the entries at or after a sequence number. */
  async countFrom(seq: number): Promise<number> {
    const { consumer, pending } = await this.#open(seq);
    await dropConsumer(consumer);
    return pending;
  }

  /**
   * Yields the entries before a sequence number, the newest first.
   * @param above The number of entries at or after `end`.
   * @param total The number of all entries.
   */
  async *below(end: number, above: number, total: number): AsyncGenerator<PlacedSession, void, undefined> {
    let upTo = end - 1;
    let passed = above;
    for (let scale = 1; upTo >= this.#firstSeq; scale = Math.min(scale * GROWTH.factor, GROWTH.max)) {
      const { from, found, above } = await this.#read(upTo, passed, Math.max(0, total - passed), scale);
      yield* found;
      passed = above + found.length;
      upTo = from - 1;
    }
  }

  /** Reads the entries after a sequence number, at most `max`, also those that are rewritten meanwhile. */
  async after(seq: number, max: number): Promise<readonly PlacedSession[]> {
    for (let tries = 1; ; tries++) {
      const { consumer, source, pending } = await this.#open(seq + 1);
      const found = new Map<string, PlacedSession | null>();
      let read = 0;
      // It reads on until nothing is pending: a rewritten entry comes again, at the end.
      for await (const message of storedMessages(source, consumer, { max_messages: AT_ONCE })) {
        found.set(message.subject, this.#placed(message));
        if (++read >= max) break;
      }
      if (read >= max || found.size >= pending) return [...found.values()].filter((placed) => placed !== null);
      // An entry that was removed meanwhile is not counted by the next try.
      if (tries >= REPLICA_TRIES) throw this.#notServed();
    }
  }

  /** Reads the entries of the next window, the newest first. @returns them and the start of the window. */
  async #read(
    upTo: number,
    aboveBefore: number,
    left: number,
    scale: number,
  ): Promise<{ readonly from: number; readonly found: PlacedSession[]; readonly above: number }> {
    let above = aboveBefore;
    for (let tries = 1; ; tries++) {
      const { from, consumer, source, count } = await this.#window(upTo, above, left, scale);
      const found: PlacedSession[] = [];
      for await (const message of storedMessages(source, consumer, { max_messages: AT_ONCE })) {
        if (message.seq > upTo) break;
        const placed = this.#placed(message);
        if (placed) found.push(placed);
      }
      found.reverse();
      if (found.length >= count) return { from, found, above };
      // Entries that were rewritten meanwhile are after the window now.
      const now = await this.countFrom(upTo + 1);
      const isWhole = found.length >= count - Math.max(0, now - above);
      above = now;
      if (isWhole) return { from, found, above };
      if (tries >= REPLICA_TRIES) throw this.#notServed();
    }
  }

  #notServed(): RecordNotServedError {
    return new RecordNotServedError(STREAMS.sessions, subjects.tenantEntries(this.#tenant), null);
  }

  #placed({ seq, subject, data }: JsMsg): PlacedSession | null {
    const ref = parseSessionEntry(subject);
    return ref && { sessionId: ref.sessionId, seq, listing: () => listingOf(this.#nc, ref, data) };
  }

  /** Finds a window that ends at `upTo` and has `scale` times the entries of {@link WINDOW}, by bisection. */
  async #window(upTo: number, above: number, left: number, scale: number): Promise<Window> {
    const least = WINDOW.least * scale;
    const most = WINDOW.most * scale;
    let tooMany = this.#firstSeq;
    let tooFew = upTo + 1;
    let from = tooMany;
    if (left > most)
      from = Math.max(tooMany, upTo + 1 - Math.ceil((WINDOW.wanted * scale * (upTo + 1 - this.#firstSeq)) / left));
    for (;;) {
      const { source, consumer, pending } = await this.#open(from);
      const count = pending - above;
      const isFit = count <= most && (count >= least || from === this.#firstSeq);
      if (isFit || tooFew - tooMany <= 1) return { from, consumer, source, count };
      await dropConsumer(consumer);
      if (count > most) tooMany = from;
      else tooFew = from;
      from = Math.floor((tooMany + tooFew) / 2);
    }
  }

  async #open(from: number): Promise<{ source: OrderedSource; consumer: Consumer; pending: number }> {
    const source: OrderedSource = {
      nc: this.#nc,
      stream: STREAMS.sessions,
      options: {
        filter_subjects: subjects.tenantEntries(this.#tenant),
        deliver_policy: DeliverPolicy.StartSequence,
        opt_start_seq: Math.max(1, from),
      },
    };
    const consumer = await openConsumer(source);
    return { source, consumer, pending: (await consumer.info(true)).num_pending };
  }
}

/** Reads an entry. The entry of a live session is only a mark: its newest record is read instead (INDEX-3). */
async function listingOf(nc: NatsConnection, ref: SessionRef, entry: Uint8Array): Promise<IndexedSession | null> {
  return entryOf(entry) ?? newestListing(nc, ref);
}

/** Parses an entry; null for a mark, a removed entry, or one with another schema. */
function entryOf(bytes: Uint8Array): IndexedSession | null {
  try {
    const read = SessionIndexEntry.safeParse(JSON.parse(new TextDecoder().decode(bytes)));
    return read.success ? (read.data as IndexedSession) : null;
  } catch {
    // Not JSON, or empty: the journal is read instead.
    return null;
  }
}

async function newestListing(nc: NatsConnection, ref: SessionRef): Promise<WireListedSession | null> {
  const newest = await readApart(nc, ref);
  if (newest === null) return null;
  return newest.bytes === null
    ? unreadableListing(ref.sessionId, newest.problem)
    : listingFrom(ref.sessionId, newest.bytes);
}
