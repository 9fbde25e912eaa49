/**
 * The sessions of a tenant, the one that was written to last coming first, found without reading what they have written: the store
 * says when each was written to. Whoever wants the newest few reads the ends of the streams alone; whoever goes on behind them
 * reads one heading for each session. Records are read for those that are asked for.
 */
import { JOURNAL_STREAMS, parseJournalSubject, type SessionRef, subjects } from '@coxswain/protocol';
import { type Consumer, DeliverPolicy, type JsMsg } from '@nats-io/jetstream';
import { BusNotPreparedError } from './client-errors.ts';
import { dropConsumer, type OrderedSource, orderedConsumer } from './ordered-messages.ts';
import { type JournalBus, lastBytes, storedMessagesOf } from './read-journal.ts';
import { listingFrom, type SessionListing } from './session-listing.ts';

/** Where a session stands in a list. */
export interface ListPlace {
  readonly sessionId: string;
  /** When the store took its newest record, nanoseconds since the epoch. */
  readonly writtenNs: bigint;
}

/** A session in a list, and what it says. */
export interface PlacedSession extends ListPlace {
  /** Reads its newest record; null where it has none any more. */
  readonly listing: () => Promise<SessionListing | null>;
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

/** See the top of the file. None on an unused bus. @throws StoreUnavailableError. */
export async function newestSessions(bus: JournalBus, tenant: string): Promise<NewestSessions> {
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

async function openStream(bus: JournalBus, stream: string, tenant: string): Promise<StreamOfSessions> {
  const filter_subjects = subjects.tenantJournals(tenant);
  const reading = (more: Partial<OrderedSource['options']>): OrderedSource => ({
    bus,
    stream,
    options: { filter_subjects, headers_only: true, ...more },
  });
  const all = reading({ deliver_policy: DeliverPolicy.LastPerSubject });
  const consumer = await orderedConsumer(all);
  const { num_pending: count } = await consumer.info(true);
  return { count, newest: fromTheEnd(reading, all, consumer, count) };
}

/** Those of one stream: of its end, where it has many, and then all others. */
async function* fromTheEnd(
  reading: (more: Partial<OrderedSource['options']>) => OrderedSource,
  all: OrderedSource,
  consumer: Consumer,
  count: number,
): AsyncGenerator<Place, void, undefined> {
  const told = new Set<string>();
  let open = true;
  try {
    if (count > END_OF_STREAM) {
      const [last] = await headings(reading({ deliver_policy: DeliverPolicy.Last }));
      const from = Math.max(1, (last?.seq ?? 0) - END_OF_STREAM + 1);
      const end = reading({ deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: from });
      for (const { place } of await headings(end)) {
        told.add(place.sessionId);
        yield place;
      }
    }
    open = false;
    for (const { place } of await headings(all, consumer)) if (!told.has(place.sessionId)) yield place;
  } finally {
    if (open) await dropConsumer(consumer);
  }
}

interface Heading {
  readonly place: Place;
  readonly seq: number;
}

/** The newest message of each session that is read, newest first. */
async function headings(source: OrderedSource, consumer?: Consumer): Promise<Heading[]> {
  const found = new Map<string, Heading>();
  const messages: AsyncIterable<JsMsg> = storedMessagesOf(source, consumer ?? (await orderedConsumer(source)), AT_ONCE);
  for await (const { subject, seq, timestampNanos: writtenNs } of messages) {
    const ref = parseJournalSubject(subject);
    if (ref) found.set(ref.sessionId, { place: { ref, sessionId: ref.sessionId, writtenNs }, seq });
  }
  return [...found.values()].sort((one, other) => newestFirst(one.place, other.place));
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

async function readListing(bus: JournalBus, ref: SessionRef): Promise<SessionListing | null> {
  const bytes = await lastBytes(bus, ref);
  return bytes === null ? null : listingFrom(ref.sessionId, bytes);
}
