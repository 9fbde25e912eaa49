/** Reads journals: one session's records in order and then as they come, and the newest record of every session. */
import {
  decodeRecord,
  isTenantsInbox,
  JOURNAL_STREAMS,
  type JournalRecord,
  journalStreamOf,
  parseJournalSubject,
  RecordNotServedError,
  SessionDeletedError,
  type SessionRef,
  subjects,
  tombstoneIn,
} from '@coxswain/protocol';
import { type Consumer, DeliverPolicy, type JetStreamClient, type JsMsg, jetstreamManager } from '@nats-io/jetstream';
import { errors, type NatsConnection } from '@nats-io/nats-core';
import { answeredInTime, askStore, isNotPermitted, isStreamNotFound, StoreUnavailableError } from './ask-store.ts';
import { JournalGapError, SessionNotFoundError } from './client-errors.ts';
import { RecordDecoder } from './large-fields.ts';
import { dropConsumer, messagesOf, type OrderedSource, orderedConsumer } from './ordered-messages.ts';
import type { JournalStart } from './transport.ts';

/** The bus as this module needs it. @internal */
export interface JournalBus {
  readonly nc: NatsConnection;
  readonly js: JetStreamClient;
  /** Where answers to this user may go, where that is not everywhere. */
  readonly inboxPrefix?: string | undefined;
}

/** A record and the bytes that are stored for it. */
export interface StoredJournalRecord {
  readonly record: JournalRecord;
  readonly bytes: Uint8Array;
  /** Where the store has it. */
  readonly seq: number;
}

/** A record number with its position in the store, so that a later read can continue without counting. */
export interface JournalPlace {
  readonly n: number;
  readonly seq: number;
}

/** How what is stored is read. */
export interface JournalReading {
  /** Nothing up to this record is read; it lies before the first that is wanted. */
  readonly after?: JournalPlace | undefined;
  /** Records that may wait for the reader, who may be slow; default {@link AT_ONCE}. */
  readonly atOnce?: number | undefined;
}

/** Records that may wait for their reader. */
const AT_ONCE = 200;

/** How long one request to the store may take. */
export const READ_TIMEOUT_MS = 5_000;

/**
 * How soon a request for messages that was lost is made again: after two to three heartbeats. By default the library takes 45
 * seconds. Whoever reads what is stored waits for it, and what a live reader waits for may be hours away.
 */
const STORED = { expires: 5_000, idle_heartbeat: 1_000 };
const LIVE = { expires: 30_000, idle_heartbeat: 2_000 };

/** Consumers that are opened one after another where one steps over records: each reads a replica of the server's choice. */
const REPLICA_TRIES = 8;

/**
 * Follows the session from record `from`: stored records first, then live ones, each once and in order. It ends only
 * when the signal aborts or the caller stops. It waits for a session that does not exist yet. `newest` skips older
 * records.
 * @throws JournalGapError if a record is missing on every replica that was read, RecordUnreadableError for an
 *   unreadable record, BusNotPreparedError if no session host has used this bus, StoreUnavailableError if NATS does not
 *   respond at the start.
 * @internal
 */
export async function* followJournal(
  bus: JournalBus,
  ref: SessionRef,
  from: JournalStart = 1,
  signal?: AbortSignal,
): AsyncGenerator<StoredJournalRecord, void, undefined> {
  const seen: ReadSoFar = { place: null };
  for (let tries = 1; ; tries++) {
    const source = sourceOf(
      bus,
      ref,
      from === 'newest' && !seen.place ? { deliver_policy: DeliverPolicy.LastPerSubject } : behind(seen.place),
    );
    const messages = messagesOf(source, await orderedConsumer(source), { ...LIVE, max_messages: AT_ONCE }, signal);
    const before = seen.place;
    try {
      return yield* densely(bus, ref, from, messages, seen);
    } catch (error) {
      if (seen.place !== before) tries = 1;
      if (!(error instanceof JournalGapError) || tries >= REPLICA_TRIES) throw error;
    }
  }
}

/**
 * Reads the stored records of the session, then ends.
 * @throws JournalGapError if the record after `after` differs, or a record is missing on every replica that was read.
 *   SessionDeletedError before the first record of a deleted session. RecordNotServedError if the end of the journal
 *   cannot be read. StoreUnavailableError if NATS does not respond for ten seconds at the start, or for forty seconds
 *   later.
 * @internal
 */
export async function* readJournal(
  bus: JournalBus,
  ref: SessionRef,
  from = 1,
  { after, atOnce }: JournalReading = {},
): AsyncGenerator<StoredJournalRecord, void, undefined> {
  const newest = await lastBytes(bus, ref);
  const tombstone = newest && tombstoneIn(newest);
  if (tombstone) throw new SessionDeletedError(tombstone);
  const until = (newest && numberOf(newest)) ?? 0;
  const seen: ReadSoFar = { place: after ?? null };
  for (let tries = 1; ; tries++) {
    const before = seen.place;
    let failure: Error;
    try {
      const source = sourceOf(bus, ref, behind(seen.place));
      yield* densely(bus, ref, from, storedMessagesOf(source, await orderedConsumer(source), atOnce), seen);
      if ((seen.place?.n ?? 0) >= until || (await isDeleted(bus, ref))) return;
      failure = new RecordNotServedError(journalStreamOf(ref.sessionId), subjects.journal(ref), null);
    } catch (error) {
      if (!(error instanceof JournalGapError)) throw error;
      failure = error;
    }
    if (seen.place !== before) tries = 1;
    if (tries >= REPLICA_TRIES) throw failure;
  }
}

/** How far a reader has come; its next consumer starts behind it. */
interface ReadSoFar {
  place: JournalPlace | null;
}

function sourceOf(bus: JournalBus, ref: SessionRef, options: Partial<OrderedSource['options']>): OrderedSource {
  // The filter is one string: only then may a permission be bound to this session's subject.
  return {
    bus,
    stream: journalStreamOf(ref.sessionId),
    options: { filter_subjects: subjects.journal(ref), ...options },
  };
}

function behind(place: JournalPlace | null): Partial<OrderedSource['options']> {
  return place === null ? {} : { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: place.seq + 1 };
}

/** A deletion purges what a reader has not read yet. */
async function isDeleted(bus: JournalBus, ref: SessionRef): Promise<boolean> {
  const newest = await lastBytes(bus, ref);
  return newest === null || tombstoneIn(newest) !== null;
}

/** The newest record of a session, or null where there is none. Read where writes are decided. @internal */
export async function lastRecord(bus: JournalBus, ref: SessionRef): Promise<JournalRecord | null> {
  const bytes = await lastBytes(bus, ref);
  return bytes === null ? null : decodeRecord(bytes);
}

/**
 * The number of a session's newest record, also of one that this release cannot read; 0 where there is none.
 * @throws SessionDeletedError where it is deleted.
 * @internal
 */
export async function lastNumber(bus: JournalBus, ref: SessionRef): Promise<number> {
  const bytes = await lastBytes(bus, ref);
  if (bytes === null) return 0;
  const tombstone = tombstoneIn(bytes);
  if (tombstone) throw new SessionDeletedError(tombstone);
  return numberOf(bytes) ?? 0;
}

/**
 * Connections whose user may read its tenant's journals alone, and whose inboxes do not say so: the leader's reads are of a whole
 * stream.
 */
const tenantsOwn = new WeakSet<NatsConnection>();

/**
 * What is stored last of a session, a record or a tombstone; null where there is nothing.
 * @throws RecordNotServedError where the store reports a record, and no replica serves it.
 * @internal
 */
export async function lastBytes(bus: JournalBus, ref: SessionRef): Promise<Uint8Array | null> {
  return (await lastStored(bus, ref))?.bytes ?? null;
}

/**
 * As {@link lastBytes}, with its session. A user that may not read through the leader reads a replica, which may lag
 * behind or be damaged: the leader's index says whether that was the newest.
 */
async function lastStored(bus: JournalBus, ref: SessionRef): Promise<NewestRecord | null> {
  const led = await leadersLast(bus, ref);
  if (led) return led;
  const [first, reported] = await Promise.all([
    led === undefined ? replicasLast(bus.nc, ref) : null,
    reportedRecords(bus, ref),
  ]);
  for (let tries = 0, served = first; ; tries++) {
    if (reported === null || (await isNewest(bus, ref, served, reported))) return served;
    if (tries === REPLICA_TRIES) break;
    await new Promise((resolve) => setTimeout(resolve, LAG_MS));
    // It goes to a replica of the server's choice.
    served = await replicasLast(bus.nc, ref);
  }
  throw new RecordNotServedError(journalStreamOf(ref.sessionId), subjects.journal(ref), null);
}

/** Whether what a replica serves is the newest: records are numbered from 1, and a tombstone is the last. */
async function isNewest(
  bus: JournalBus,
  ref: SessionRef,
  served: NewestRecord | null,
  reported: number,
): Promise<boolean> {
  if (!served) return reported === 0;
  const n = numberOf(served.bytes);
  if (n === null || n === reported || tombstoneIn(served.bytes)) return true;
  // More than the leader has reported: it was stored since, or the leader has purged a session that was deleted.
  return n > reported && ((await reportedRecords(bus, ref)) ?? n) >= n;
}

/** A follower lags behind its leader for milliseconds. */
const LAG_MS = 25;

/** Through the stream's leader; undefined where this user may not read that way. */
async function leadersLast(bus: JournalBus, ref: SessionRef): Promise<NewestRecord | null | undefined> {
  if (tenantsOwn.has(bus.nc) || isTenantsInbox(bus.inboxPrefix)) return undefined;
  const manager = await jetstreamManager(bus.nc, { checkAPI: false, timeout: READ_TIMEOUT_MS });
  try {
    const message = await askStore(() =>
      manager.streams.getMessage(journalStreamOf(ref.sessionId), { last_by_subj: subjects.journal(ref) }),
    );
    return message && { ref, bytes: message.data };
  } catch (error) {
    if (isStreamNotFound(error)) return null;
    if (!isNotPermitted(error)) throw error;
    tenantsOwn.add(bus.nc);
    return undefined;
  }
}

/**
 * How many records of the session the leader's index reports; null for a user that may not ask. It is asked in place of the
 * leader's read, which cannot be bound to a tenant: `$JS.API.STREAM.MSG.GET` names what is read in its body, so that a permission
 * for it would be one for every tenant's records.
 */
async function reportedRecords(bus: JournalBus, ref: SessionRef): Promise<number | null> {
  const manager = await jetstreamManager(bus.nc, { checkAPI: false, timeout: READ_TIMEOUT_MS });
  const subject = subjects.journal(ref);
  try {
    const { state } = await askStore(() =>
      manager.streams.info(journalStreamOf(ref.sessionId), { subjects_filter: subject }),
    );
    return state.subjects?.[subject] ?? 0;
  } catch (error) {
    if (isStreamNotFound(error)) return 0;
    // A user that reads no journals, or one of an earlier configuration: what replicas serve is all that it has.
    if (isNotPermitted(error)) return null;
    throw error;
  }
}

/** A permission can be bound to the subject that stands in the request's own. Any replica answers, and may lag a moment. */
async function replicasLast(nc: NatsConnection, ref: SessionRef): Promise<NewestRecord | null> {
  const subject = `$JS.API.DIRECT.GET.${journalStreamOf(ref.sessionId)}.${subjects.journal(ref)}`;
  const answer = await askStore(() => nc.request(subject, '', { timeout: READ_TIMEOUT_MS }));
  if (answer.headers?.code === 404) return null;
  return { ref, bytes: answer.data };
}

/** What is stored last of a session. */
export interface NewestRecord {
  readonly ref: SessionRef;
  readonly bytes: Uint8Array;
}

/** A session whose newest record no replica serves, and why. */
export interface NotServed {
  readonly ref: SessionRef;
  readonly bytes: null;
  readonly problem: RecordNotServedError;
}

/** Reads the newest record of a session that a replica has left out; null where it has been deleted. @internal */
export async function readApart(bus: JournalBus, ref: SessionRef): Promise<NewestRecord | NotServed | null> {
  try {
    return await lastStored(bus, ref);
  } catch (problem) {
    if (problem instanceof RecordNotServedError) return { ref, bytes: null, problem };
    throw problem;
  }
}

/**
 * The ids of all sessions of a tenant, read from the store's index of subjects alone. None on an unused bus.
 * @internal
 */
export async function sessionIds(bus: JournalBus, tenant: string): Promise<string[]> {
  const manager = await jetstreamManager(bus.nc, { checkAPI: false, timeout: READ_TIMEOUT_MS });
  try {
    const infos = await Promise.all(
      JOURNAL_STREAMS.map((stream) =>
        askStore(() => manager.streams.info(stream, { subjects_filter: subjects.tenantJournals(tenant) })),
      ),
    );
    return infos
      .flatMap(({ state }) => Object.keys(state.subjects ?? {}))
      .flatMap((subject) => parseJournalSubject(subject)?.sessionId ?? []);
  } catch (error) {
    if (isStreamNotFound(error)) return [];
    throw error;
  }
}

/** Seconds in which a consumer answers and delivers nothing: its replica cannot read what comes next. */
const SILENT_LOOKS_MAX = 5;

/**
 * What the store holds for this consumer, up to the moment when nothing more waits. The consumer is deleted then. A damaged
 * replica may step over messages, or end early: the caller compares what came with what the leader reports.
 * @internal
 */
export async function* storedMessagesOf(
  source: OrderedSource,
  consumer: Consumer,
  atOnce = AT_ONCE,
): AsyncGenerator<JsMsg, void, undefined> {
  const { num_pending: waiting } = await consumer.info(true);
  if (waiting === 0) return dropConsumer(consumer);
  const nothingLeft = new AbortController();
  let delivered = 0;
  let silentLooks = 0;
  // What waited when it was counted may be deleted before it is delivered, or stand where the replica cannot read.
  const look = () =>
    void consumer.info().then(
      (info) => {
        const isAtEnd = info.num_pending === 0 && info.delivered.consumer_seq <= delivered;
        if (isAtEnd || ++silentLooks >= SILENT_LOOKS_MAX) nothingLeft.abort();
      },
      // A store that does not answer is given up by who waits.
      () => undefined,
    );
  const messages = messagesOf(source, consumer, { ...STORED, max_messages: atOnce }, nothingLeft.signal);
  // Whoever reads what is stored waits for nobody: the library would go on asking a store that has gone for ever.
  for await (const message of answeredInTime(messages, look)) {
    delivered = message.info.deliverySequence;
    silentLooks = 0;
    yield message;
    if (message.info.pending === 0) return;
  }
  // Without this, a connection that is closed meanwhile would make a part of a journal look like all of it.
  if (!nothingLeft.signal.aborted && source.bus.nc.isClosed())
    throw new StoreUnavailableError(new errors.ClosedConnectionError());
}

/** Records by their dense numbers: a repeated one is left out, a missing one is an error. */
async function* densely(
  bus: JournalBus,
  ref: SessionRef,
  from: JournalStart,
  messages: AsyncIterable<JsMsg>,
  seen: ReadSoFar,
): AsyncGenerator<StoredJournalRecord, void, undefined> {
  const decoder = new RecordDecoder(bus, ref.tenant);
  let expected: number | null = seen.place && seen.place.n + 1;
  for await (const message of messages) {
    const n = numberOf(message.data);
    // What cannot even be numbered goes to the decoder, which says what is wrong with it.
    if (n !== null) {
      if (expected !== null && n < expected) continue;
      const first = from === 'newest' ? n : 1;
      if (n !== (expected ?? first)) throw new JournalGapError(ref.sessionId, expected ?? first, n);
      expected = n + 1;
      seen.place = { n, seq: message.seq };
      // Records before `from` are counted but not decoded, which is what costs.
      if (from !== 'newest' && n < from) continue;
    }
    yield { record: await decoder.decode(message.data), bytes: message.data, seq: message.seq };
  }
}

function numberOf(bytes: Uint8Array): number | null {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(bytes));
    const n = (value as { n?: unknown } | null)?.n;
    return typeof n === 'number' ? n : null;
  } catch {
    // Not JSON: the decoder says so, with a code.
    return null;
  }
}

/**
 * Reads a journal that may not exist yet.
 * @returns its records; none for an unknown session. @throws every other error of the journal.
 */
export async function* storedRecords<Entry>(
  journal: AsyncGenerator<Entry, void, undefined>,
): AsyncGenerator<Entry, void, undefined> {
  try {
    yield* journal;
  } catch (error) {
    if (!(error instanceof SessionNotFoundError)) throw error;
  }
}
