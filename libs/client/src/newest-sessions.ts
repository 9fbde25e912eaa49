import {
  JOURNAL_STREAMS,
  parseJournalSubject,
  type SessionRef,
  sessionRef,
  subjects,
  type TenantId,
} from '@coxswain/protocol';
import { type Consumer, DeliverPolicy } from '@nats-io/jetstream';
import { askStore } from './ask-store.ts';
import { BusNotPreparedError } from './client-errors.ts';
import { dropConsumer, type OrderedSource, orderedConsumer } from './ordered-messages.ts';
import { type JournalBus, READ_TIMEOUT_MS, readApart, sessionIds, storedMessagesOf } from './read-journal.ts';
import { listingFrom, unreadableListing, type WireSessionListing } from './session-listing.ts';

/** The position of a session in a list. */
export interface ListPlace {
  readonly sessionId: string;
  /** When the store took its newest record, nanoseconds since the epoch. */
  readonly writtenNs: bigint;
}

/** A session in a list, and what it says. */
export interface PlacedSession extends ListPlace {
  /** Reads the newest record of the session; null if it no longer has records. */
  readonly listing: () => Promise<WireSessionListing | null>;
}

/** A list, newest first. */
export interface NewestSessions {
  /** How many there are, deleted ones among them. */
  readonly total: number;
  /** To be gone through once, as far as is wanted. */
  readonly sessions: AsyncGenerator<PlacedSession, void, undefined>;
}

/** Messages of the end of a stream that are looked at before all of its sessions are. */
const END_OF_STREAM = 256;

/** By time, and by id where that is the same: every page follows from the one before, whatever is written meanwhile. */
export function newestFirst(one: ListPlace, other: ListPlace): number {
  if (one.writtenNs !== other.writtenNs) return one.writtenNs < other.writtenNs ? 1 : -1;
  if (one.sessionId === other.sessionId) return 0;
  return one.sessionId < other.sessionId ? 1 : -1;
}

/**
 * The sessions of a tenant, newest write first, found without reading their records: the store reports when each was
 * written to. The first page reads the ends of the streams alone. Later pages read one header for each session. Only the
 * records of requested sessions are read. Empty on an unused bus. @throws StoreUnavailableError. @internal
 */
export async function newestSessions(bus: JournalBus, tenant: TenantId): Promise<NewestSessions> {
  try {
    const streams = await Promise.all(JOURNAL_STREAMS.map((stream) => openStream(bus, stream, tenant)));
    const total = streams.reduce((sum, { count }) => sum + count, 0);
    return { total, sessions: placed(bus, streams) };
  } catch (error) {
    if (error instanceof BusNotPreparedError) return { total: 0, sessions: placed(bus, []) };
    throw error;
  }
}

interface StreamOfSessions {
  readonly count: number;
  readonly newest: AsyncGenerator<Place, void, undefined>;
}

interface Place extends ListPlace {
  readonly ref: SessionRef;
}

async function openStream(bus: JournalBus, stream: string, tenant: TenantId): Promise<StreamOfSessions> {
  const filter_subjects = subjects.tenantJournals(tenant);
  const reading = (more: Partial<OrderedSource['options']>): OrderedSource => ({
    bus,
    stream,
    options: { filter_subjects, headers_only: true, ...more },
  });
  const all = reading({ deliver_policy: DeliverPolicy.LastPerSubject });
  const consumer = await orderedConsumer(all);
  const [{ num_pending: counted }, reported] = await Promise.all([
    consumer.info(true),
    reportedSessions(bus, stream, filter_subjects),
  ]);
  const count = Math.max(counted, reported);
  return { count, newest: fromTheEnd(bus, tenant, reading, all, consumer, { counted, reported }) };
}

/** How many sessions the stream's leader reports: the total of a page of subjects behind the last. */
async function reportedSessions({ nc }: JournalBus, stream: string, filter: string): Promise<number> {
  const query = JSON.stringify({ subjects_filter: filter, offset: Number.MAX_SAFE_INTEGER });
  const answer = await askStore(() => nc.request(`$JS.API.STREAM.INFO.${stream}`, query, { timeout: READ_TIMEOUT_MS }));
  return answer.json<{ readonly total?: number }>().total ?? 0;
}

/**
 * Those of one stream: of its end, where it has many, and then all others. What the leader reports and the consumer's replica has
 * left out is read apart.
 */
async function* fromTheEnd(
  bus: JournalBus,
  tenant: TenantId,
  reading: (more: Partial<OrderedSource['options']>) => OrderedSource,
  all: OrderedSource,
  consumer: Consumer,
  { counted, reported }: { readonly counted: number; readonly reported: number },
): AsyncGenerator<Place, void, undefined> {
  const listed = new Set<string>();
  let open = true;
  try {
    if (counted > END_OF_STREAM && counted >= reported) {
      const [last] = (await headings(reading({ deliver_policy: DeliverPolicy.Last }))).found;
      const from = Math.max(1, (last?.seq ?? 0) - END_OF_STREAM + 1);
      const end = await headings(reading({ deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: from }));
      // Where records are left out the newest sessions may be among them, and no place of the list could be trusted.
      for (const { place } of end.isWhole ? end.found : []) {
        listed.add(place.sessionId);
        yield place;
      }
    }
    open = false;
    const { found } = await headings(all, consumer);
    const leftOut = found.length < reported ? await readLeftOut(bus, all.stream, tenant, found) : [];
    const places = [...found.map(({ place }) => place), ...leftOut];
    if (leftOut.length > 0) places.sort(newestFirst);
    for (const place of places) if (!listed.has(place.sessionId)) yield place;
  } finally {
    if (open) await dropConsumer(consumer);
  }
}

/** The sessions of a stream that its leader reports, and that are not among those found. */
async function readLeftOut(
  bus: JournalBus,
  stream: string,
  tenant: TenantId,
  found: readonly Heading[],
): Promise<Place[]> {
  const known = new Set(found.map(({ place }) => place.sessionId));
  const missing = (await sessionIds(bus, tenant, [stream])).filter((id) => !known.has(id));
  const places: Place[] = [];
  for (const id of missing) {
    const newest = await readApart(bus, sessionRef(id, tenant));
    if (newest) places.push({ ref: newest.ref, sessionId: id, writtenNs: newest.writtenNs });
  }
  return places;
}

interface Heading {
  readonly place: Place;
  readonly seq: number;
}

interface Headings {
  readonly found: readonly Heading[];
  /** Whether as many messages came as the consumer's replica reports. */
  readonly isWhole: boolean;
}

/** The newest message of each session that is read, newest first. */
async function headings(source: OrderedSource, opened?: Consumer): Promise<Headings> {
  const found = new Map<string, Heading>();
  const consumer = opened ?? (await orderedConsumer(source));
  let left = 0;
  for await (const message of storedMessagesOf(source, consumer, AT_ONCE)) {
    const { subject, seq, timestampNanos: writtenNs } = message;
    left = message.info.pending;
    const ref = parseJournalSubject(subject);
    if (ref) found.set(ref.sessionId, { place: { ref, sessionId: ref.sessionId, writtenNs }, seq });
  }
  const sorted = [...found.values()].sort((one, other) => newestFirst(one.place, other.place));
  return { found: sorted, isWhole: left === 0 };
}

/** Headings are small. */
const AT_ONCE = 1_000;

/** Those of all streams as one. */
async function* placed(
  bus: JournalBus,
  streams: readonly StreamOfSessions[],
): AsyncGenerator<PlacedSession, void, undefined> {
  try {
    const heads = await Promise.all(
      streams.map(async ({ newest }) => ({ newest, next: (await newest.next()).value ?? null })),
    );
    for (;;) {
      let first: (typeof heads)[number] | null = null;
      for (const head of heads) if (head.next && (!first?.next || newestFirst(head.next, first.next) < 0)) first = head;
      if (!first?.next) return;
      const { ref, sessionId, writtenNs } = first.next;
      yield { sessionId, writtenNs, listing: () => readListing(bus, ref) };
      first.next = (await first.newest.next()).value ?? null;
    }
  } finally {
    await Promise.all(streams.map(({ newest }) => newest.return()));
  }
}

async function readListing(bus: JournalBus, ref: SessionRef): Promise<WireSessionListing | null> {
  const newest = await readApart(bus, ref);
  if (newest === null) return null;
  return newest.bytes === null
    ? unreadableListing(ref.sessionId, newest.problem)
    : listingFrom(ref.sessionId, newest.bytes);
}
