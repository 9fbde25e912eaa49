/**
 * The sessions of a tenant, the most recently changed first, read from the index of sessions (INDEX-1 to INDEX-3 in
 * `libs/ports/src/session-index.ts`). The order is that of the entries: a host writes one when a session wakes, when a run of a
 * live session starts, and when the session leaves memory.
 *
 * LIST-1  No more of the index is read than the reader takes, in windows of some hundred entries, from the end of the stream.
 * LIST-2  A session without an entry is never left out: the streams say how many sessions have a journal, and how many have an
 *         entry. If the index has fewer, those without an entry follow behind the others, in the order of their ids.
 * LIST-3  A replica that serves fewer entries than it reports is not trusted: another one is read, and then the list fails.
 */
import {
  JOURNAL_STREAMS,
  ListedSessionDocument as ListedSessionSchema,
  parseSessionEntry,
  RecordNotServedError,
  type SessionRef,
  STREAMS,
  sessionRef,
  subjects,
  type TenantId,
} from '@coxswain/protocol';
import { type Consumer, DeliverPolicy, jetstreamManager, type StreamInfo } from '@nats-io/jetstream';
import { askStore, isStreamNotFound } from './ask-store.ts';
import { dropConsumer, type OrderedSource, orderedConsumer } from './ordered-messages.ts';
import { type JournalBus, READ_TIMEOUT_MS, readApart, sessionIds, storedMessagesOf } from './read-journal.ts';
import { listingFrom, unreadableListing, type WireListedSession } from './session-listing.ts';

/** The position of a session in a list. */
export interface ListPlace {
  readonly sessionId: string;
  /** The sequence of its entry in the index; 0 without an entry. */
  readonly seq: number;
}

/** A session in a list. */
export interface PlacedSession extends ListPlace {
  /** What lists show of it: its entry, or its newest record. Null if it has no records. */
  readonly listing: () => Promise<WireListedSession | null>;
}

/** A list, the most recently changed sessions first. */
export interface NewestSessions {
  /** Sessions of the tenant, deleted ones included. */
  readonly total: number;
  /** Those of them that the list has. */
  readonly left: number;
  /** To be iterated once, as far as needed. */
  readonly sessions: AsyncGenerator<PlacedSession, void, undefined>;
}

/** Entries that are read at a time: enough for a page of the default size, and for its few deleted sessions. */
const WINDOW = { least: 64, wanted: 192, most: 384 } as const;
/** Replicas that are read before a list fails (LIST-3). */
const REPLICA_TRIES = 8;
/** Entries are small. */
const AT_ONCE = 1_000;

/**
 * Opens a list. An unused bus has no sessions.
 * @param after the list starts behind this place; null: at the newest session.
 * @throws StoreUnavailableError.
 * @internal
 */
export async function newestSessions(
  bus: JournalBus,
  tenant: TenantId,
  after: ListPlace | null = null,
): Promise<NewestSessions> {
  // The journals first: a session that starts meanwhile has its entry before its first record.
  const journals = await Promise.all(JOURNAL_STREAMS.map((stream) => infoOf(bus, stream)));
  const index = await infoOf(bus, STREAMS.sessions);
  const withJournal = journals.reduce((sum, info) => sum + (info?.state.num_subjects ?? 0), 0);
  const entries = index && index.state.messages > 0 ? new Entries(bus, tenant, index.state) : null;
  const indexed = entries ? await entries.countFrom(1) : 0;
  const end = after?.seq ?? Number.POSITIVE_INFINITY;
  const above = !entries || end > entries.lastSeq ? 0 : end === 0 ? indexed : await entries.countFrom(end);
  const unindexed = withJournal > (index?.state.num_subjects ?? 0) ? await withoutEntry(bus, tenant) : [];
  const others = end === 0 ? unindexed.filter((id) => id < (after?.sessionId ?? '')) : unindexed;
  async function* listed(): AsyncGenerator<PlacedSession, void, undefined> {
    if (entries && end > 0) yield* entries.below(Math.min(end, entries.lastSeq + 1), above, indexed);
    for (const sessionId of others)
      yield { sessionId, seq: 0, listing: () => newestListing(bus, sessionRef(sessionId, tenant)) };
  }
  return { total: indexed + unindexed.length, left: indexed - above + others.length, sessions: listed() };
}

/** The place of a session in the list; null if it is not in the index. @throws StoreUnavailableError. @internal */
export async function placeInList(bus: JournalBus, { tenant, sessionId }: SessionRef): Promise<ListPlace | null> {
  const subject = `$JS.API.DIRECT.GET.${STREAMS.sessions}.${subjects.sessionEntry({ tenant, sessionId })}`;
  const answer = await askStore(() => bus.nc.request(subject, '', { timeout: READ_TIMEOUT_MS }));
  const seq = Number(answer.headers?.last('Nats-Sequence'));
  return Number.isInteger(seq) && seq > 0 ? { sessionId, seq } : null;
}

/** A stream's state; null where there is no such stream. */
async function infoOf(bus: JournalBus, stream: string): Promise<StreamInfo | null> {
  const manager = await jetstreamManager(bus.nc, { checkAPI: false, timeout: READ_TIMEOUT_MS });
  try {
    return await askStore(() => manager.streams.info(stream));
  } catch (error) {
    if (isStreamNotFound(error)) return null;
    throw error;
  }
}

/** The sessions that have a journal and no entry, by id in descending order. */
async function withoutEntry(bus: JournalBus, tenant: TenantId): Promise<string[]> {
  const manager = await jetstreamManager(bus.nc, { checkAPI: false, timeout: READ_TIMEOUT_MS });
  const ids = new Set(await sessionIds(bus, tenant));
  try {
    const { state } = await askStore(() =>
      manager.streams.info(STREAMS.sessions, { subjects_filter: subjects.tenantEntries(tenant) }),
    );
    for (const subject of Object.keys(state.subjects ?? {}))
      ids.delete(parseSessionEntry(subject)?.sessionId as string);
  } catch (error) {
    if (!isStreamNotFound(error)) throw error;
  }
  return [...ids].sort().reverse();
}

/** Entries of a range of the stream. */
interface Window {
  readonly from: number;
  readonly consumer: Consumer;
  readonly source: OrderedSource;
  /** Entries in the range, by the replica that is read. */
  readonly count: number;
}

/** The entries of a tenant. */
class Entries {
  readonly #bus: JournalBus;
  readonly #tenant: TenantId;
  readonly #firstSeq: number;
  readonly lastSeq: number;

  constructor(bus: JournalBus, tenant: TenantId, state: StreamInfo['state']) {
    this.#bus = bus;
    this.#tenant = tenant;
    this.#firstSeq = state.first_seq;
    this.lastSeq = state.last_seq;
  }

  /** How many entries stand at this sequence or behind it. */
  async countFrom(seq: number): Promise<number> {
    const { consumer, pending } = await this.#open(seq);
    await dropConsumer(consumer);
    return pending;
  }

  /**
   * The entries before a sequence, the newest first.
   * @param above how many entries stand at `end` or behind it.
   * @param total how many there are.
   */
  async *below(end: number, above: number, total: number): AsyncGenerator<PlacedSession, void, undefined> {
    let upTo = end - 1;
    let passed = above;
    while (upTo >= this.#firstSeq) {
      const { from, found, above } = await this.#read(upTo, passed, Math.max(0, total - passed));
      yield* found;
      passed = above + found.length;
      upTo = from - 1;
    }
  }

  /** The entries of the next window, the newest first, and where it starts. */
  async #read(
    upTo: number,
    aboveBefore: number,
    left: number,
  ): Promise<{ readonly from: number; readonly found: PlacedSession[]; readonly above: number }> {
    let above = aboveBefore;
    for (let tries = 1; ; tries++) {
      const { from, consumer, source, count } = await this.#window(upTo, above, left);
      const found: PlacedSession[] = [];
      for await (const { seq, subject, data } of storedMessagesOf(source, consumer, AT_ONCE)) {
        if (seq > upTo) break;
        const ref = parseSessionEntry(subject);
        if (ref) found.push({ sessionId: ref.sessionId, seq, listing: () => listingOf(this.#bus, ref, data) });
      }
      found.reverse();
      if (found.length >= count) return { from, found, above };
      // Entries that were replaced meanwhile stand behind the window now.
      const now = await this.countFrom(upTo + 1);
      const isWhole = found.length >= count - Math.max(0, now - above);
      above = now;
      if (isWhole) return { from, found, above };
      if (tries >= REPLICA_TRIES)
        throw new RecordNotServedError(STREAMS.sessions, subjects.tenantEntries(this.#tenant), null);
    }
  }

  /** A window that ends at `upTo` and has a fit number of entries: adjacent starts differ by one entry at most. */
  async #window(upTo: number, above: number, left: number): Promise<Window> {
    let tooMany = this.#firstSeq;
    let tooFew = upTo + 1;
    let from = tooMany;
    if (left > WINDOW.most)
      from = Math.max(tooMany, upTo + 1 - Math.ceil((WINDOW.wanted * (upTo + 1 - this.#firstSeq)) / left));
    for (;;) {
      const { source, consumer, pending } = await this.#open(from);
      const count = pending - above;
      const isFit = count <= WINDOW.most && (count >= WINDOW.least || from === this.#firstSeq);
      if (isFit || tooFew - tooMany <= 1) return { from, consumer, source, count };
      await dropConsumer(consumer);
      if (count > WINDOW.most) tooMany = from;
      else tooFew = from;
      from = Math.floor((tooMany + tooFew) / 2);
    }
  }

  async #open(from: number): Promise<{ source: OrderedSource; consumer: Consumer; pending: number }> {
    const source: OrderedSource = {
      bus: this.#bus,
      stream: STREAMS.sessions,
      options: {
        filter_subjects: subjects.tenantEntries(this.#tenant),
        deliver_policy: DeliverPolicy.StartSequence,
        opt_start_seq: Math.max(1, from),
      },
    };
    const consumer = await orderedConsumer(source);
    return { source, consumer, pending: (await consumer.info(true)).num_pending };
  }
}

/** An entry as it stands, or the session's newest record in place of a mark (INDEX-3). */
async function listingOf(bus: JournalBus, ref: SessionRef, entry: Uint8Array): Promise<WireListedSession | null> {
  return entryOf(entry) ?? newestListing(bus, ref);
}

/** Null for a mark, for a removed entry, and for an entry of another shape. */
function entryOf(bytes: Uint8Array): WireListedSession | null {
  try {
    const read = ListedSessionSchema.safeParse(JSON.parse(new TextDecoder().decode(bytes)));
    return read.success ? (read.data as WireListedSession) : null;
  } catch {
    // Not JSON, or empty: the journal says what is right.
    return null;
  }
}

async function newestListing(bus: JournalBus, ref: SessionRef): Promise<WireListedSession | null> {
  const newest = await readApart(bus, ref);
  if (newest === null) return null;
  return newest.bytes === null
    ? unreadableListing(ref.sessionId, newest.problem)
    : listingFrom(ref.sessionId, newest.bytes);
}
