/** Reads journals: the records of one session, stored and live, and the newest record of a session. */
import {
  createStreamReader,
  isTenantsKey,
  liveMessages,
  NotPermittedError,
  nullIfNoStream,
  type OrderedSource,
  orderedConsumer,
  retryRequest,
  StreamNotFoundError,
  type StreamReader,
  storedMessages,
  streamInfo,
  wireOf,
} from '@coxswain/bus';
import {
  decodeRecord,
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
import { type Consumer, DeliverPolicy, type JsMsg } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/nats-core';
import { BusNotPreparedError, JournalGapError, SessionNotFoundError } from './client-errors.ts';
import { RecordDecoder } from './large-fields.ts';
import type { JournalStart } from './transport.ts';

/** A record and its bytes as stored. */
export interface StoredJournalRecord {
  readonly record: JournalRecord;
  readonly bytes: Uint8Array;
  /** Bytes of the record with its large fields, which `bytes` only refers to. */
  readonly size: number;
  /** Its sequence number in the stream. */
  readonly seq: number;
}

/** A record number and its sequence number, so that a later read can continue there. */
export interface JournalPlace {
  readonly n: number;
  readonly seq: number;
}

/** Options for reading stored records. */
export interface JournalReading {
  /** Skips the records up to this one. It must come before the first wanted record. */
  readonly after?: JournalPlace | undefined;
  /** The number of records to buffer for a slow reader; default {@link AT_ONCE}. */
  readonly atOnce?: number | undefined;
}

/**
 * The default number of buffered records, each of up to 512 KiB. With half of it, reading small records takes over 10 %
 * longer.
 */
const AT_ONCE = 64;

/** The maximum number of consumers opened after a gap: each one reads a replica of the server's choice. */
const REPLICA_TRIES = 8;

/**
 * Follows the session from record `from`: stored records first, then live ones, each once and in order. It ends when
 * the signal aborts, the caller stops or the connection closes. It waits for a session that does not exist yet.
 * `newest` skips older records.
 * @param after skips the records up to this one without reading them. It must come before `from`.
 * @throws JournalGapError if a record is missing on every replica that was read. RecordUnreadableError for an
 *   unreadable record. BusNotPreparedError if no session host has used this bus. NatsUnavailableError if NATS does not
 *   respond at the start.
 * @internal
 */
export async function* followJournal(
  nc: NatsConnection,
  ref: SessionRef,
  from: JournalStart = 1,
  signal?: AbortSignal,
  after: JournalPlace | null = null,
): AsyncGenerator<StoredJournalRecord, void, undefined> {
  const seen: ReadSoFar = { place: after };
  for (let tries = 1; ; tries++) {
    const source = sourceOf(
      nc,
      ref,
      from === 'newest' && !seen.place ? { deliver_policy: DeliverPolicy.LastPerSubject } : behind(seen.place),
    );
    const messages = liveMessages(source, await openConsumer(source), { max_messages: AT_ONCE }, signal);
    const before = seen.place;
    try {
      return yield* densely(nc, ref, from, messages, seen);
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
 *   cannot be read. NatsUnavailableError if NATS does not respond for ten seconds at the start, or for forty seconds
 *   later.
 * @internal
 */
export async function* readJournal(
  nc: NatsConnection,
  ref: SessionRef,
  from = 1,
  { after, atOnce = AT_ONCE }: JournalReading = {},
): AsyncGenerator<StoredJournalRecord, void, undefined> {
  const newest = await lastBytes(nc, ref);
  const tombstone = newest && tombstoneIn(newest);
  if (tombstone) throw new SessionDeletedError(tombstone);
  const until = (newest && numberOf(newest)) ?? 0;
  const seen: ReadSoFar = { place: after ?? null };
  for (let tries = 1; ; tries++) {
    const before = seen.place;
    let failure: Error;
    try {
      const source = sourceOf(nc, ref, behind(seen.place));
      yield* densely(nc, ref, from, storedMessages(source, await openConsumer(source), { max_messages: atOnce }), seen);
      if ((seen.place?.n ?? 0) >= until || (await isDeleted(nc, ref))) return;
      failure = new RecordNotServedError(journalStreamOf(ref.sessionId), subjects.journal(ref), null);
    } catch (error) {
      if (!(error instanceof JournalGapError)) throw error;
      failure = error;
    }
    if (seen.place !== before) tries = 1;
    if (tries >= REPLICA_TRIES) throw failure;
  }
}

/** The progress of a reader; its next consumer starts after this position. */
interface ReadSoFar {
  place: JournalPlace | null;
}

function sourceOf(nc: NatsConnection, ref: SessionRef, options: Partial<OrderedSource['options']>): OrderedSource {
  // The filter is one string: only then can a permission be limited to the subject of this session.
  return {
    nc,
    stream: journalStreamOf(ref.sessionId),
    options: { filter_subjects: subjects.journal(ref), ...options },
  };
}

/** Opens a consumer. @throws BusNotPreparedError if the stream does not exist; NatsUnavailableError. @internal */
export async function openConsumer(source: OrderedSource): Promise<Consumer> {
  try {
    return await orderedConsumer(source);
  } catch (error) {
    if (error instanceof StreamNotFoundError) throw new BusNotPreparedError({ cause: error });
    throw error;
  }
}

function behind(place: JournalPlace | null): Partial<OrderedSource['options']> {
  return place === null ? {} : { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: place.seq + 1 };
}

/** Whether the session was deleted while it was read: a deletion purges the unread records. */
async function isDeleted(nc: NatsConnection, ref: SessionRef): Promise<boolean> {
  const newest = await lastBytes(nc, ref);
  return newest === null || tombstoneIn(newest) !== null;
}

/** The newest record of a session, or null without one. Reads from the stream leader if permitted. @internal */
export async function lastRecord(nc: NatsConnection, ref: SessionRef): Promise<JournalRecord | null> {
  const bytes = await lastBytes(nc, ref);
  return bytes === null ? null : decodeRecord(bytes);
}

/**
 * The number of a session's newest record, also of one that this release cannot read; 0 without records.
 * @throws SessionDeletedError for a deleted session.
 * @internal
 */
export async function lastNumber(nc: NatsConnection, ref: SessionRef): Promise<number> {
  return (await lastPlace(nc, ref)).n;
}

/** The place of the record of {@link lastNumber}; zeros without records. @internal */
export async function lastPlace(nc: NatsConnection, ref: SessionRef): Promise<JournalPlace> {
  const newest = await lastStored(nc, ref);
  if (newest === null) return { n: 0, seq: 0 };
  const tombstone = tombstoneIn(newest.bytes);
  if (tombstone) throw new SessionDeletedError(tombstone);
  return { n: numberOf(newest.bytes) ?? 0, seq: newest.seq };
}

/**
 * Connections that may not read through the stream leader, because that permission covers the whole stream. They are
 * found by a denied request; an inbox prefix of a tenant says the same.
 */
const tenantsOwn = new WeakSet<NatsConnection>();

/**
 * The newest stored message of a session, a record or a tombstone; null without one.
 * @throws RecordNotServedError if the leader reports a record that no replica serves.
 * @internal
 */
export async function lastBytes(nc: NatsConnection, ref: SessionRef): Promise<Uint8Array | null> {
  return (await lastStored(nc, ref))?.bytes ?? null;
}

/**
 * As {@link lastBytes}, with the session. A user that may not read through the leader reads a replica, which may lag or
 * be damaged. The leader's index then says whether that record is the newest.
 */
async function lastStored(nc: NatsConnection, ref: SessionRef): Promise<NewestRecord | null> {
  const led = await leadersLast(nc, ref);
  if (led) return led;
  const [first, reported] = await Promise.all([
    led === undefined ? replicasLast(nc, ref) : null,
    reportedRecords(nc, ref),
  ]);
  for (let tries = 0, served = first; ; tries++) {
    if (reported === null || (await isNewest(nc, ref, served, reported))) return served;
    if (tries === REPLICA_TRIES) break;
    await new Promise((resolve) => setTimeout(resolve, LAG_MS));
    // Each request goes to a replica of the server's choice.
    served = await replicasLast(nc, ref);
  }
  throw new RecordNotServedError(journalStreamOf(ref.sessionId), subjects.journal(ref), null);
}

/** Whether a replica's record is the newest one: records are numbered from 1, and a tombstone is the last. */
async function isNewest(
  nc: NatsConnection,
  ref: SessionRef,
  served: NewestRecord | null,
  reported: number,
): Promise<boolean> {
  if (!served) return reported === 0;
  const n = numberOf(served.bytes);
  if (n === null || n === reported || tombstoneIn(served.bytes)) return true;
  // Newer than the leader reported: it was stored since, or the leader has purged a deleted session.
  return n > reported && ((await reportedRecords(nc, ref)) ?? n) >= n;
}

/** The pause before another read: a follower lags behind its leader for milliseconds. */
const LAG_MS = 25;

/** Reads through the stream leader; undefined without the permission. */
async function leadersLast(nc: NatsConnection, ref: SessionRef): Promise<NewestRecord | null | undefined> {
  if (tenantsOwn.has(nc) || isTenantsKey(nc)) return undefined;
  try {
    const message = await retryRequest(() => journalOf(nc, ref).leaderLast(subjects.journal(ref)));
    return message && { ref, bytes: message.data, seq: message.seq };
  } catch (error) {
    if (error instanceof StreamNotFoundError) return null;
    if (!(error instanceof NotPermittedError)) throw error;
    tenantsOwn.add(nc);
    return undefined;
  }
}

/**
 * The number of the session's records in the leader's index; null without the permission. It replaces a read through
 * the leader, which cannot be limited to one tenant. `$JS.API.STREAM.MSG.GET` names the subject in its body, so a
 * permission for it covers the records of all tenants.
 */
async function reportedRecords(nc: NatsConnection, ref: SessionRef): Promise<number | null> {
  const subject = subjects.journal(ref);
  try {
    const info = () => streamInfo(nc, journalStreamOf(ref.sessionId), subject);
    const { state } = await retryRequest(info);
    return state.subjects?.[subject] ?? 0;
  } catch (error) {
    if (error instanceof StreamNotFoundError) return 0;
    // A user without access to journals, or one with permissions of an earlier version: only replicas are available.
    if (error instanceof NotPermittedError) return null;
    throw error;
  }
}

/**
 * Reads from a replica, which may lag. The request's subject contains the journal's subject, so a permission can be
 * limited to it.
 */
async function replicasLast(nc: NatsConnection, ref: SessionRef): Promise<NewestRecord | null> {
  const message = await retryRequest(() => journalOf(nc, ref).last(subjects.journal(ref)));
  return message && { ref, bytes: message.data, seq: message.seq };
}

function journalOf(nc: NatsConnection, ref: SessionRef): StreamReader {
  return createStreamReader(wireOf(nc), journalStreamOf(ref.sessionId));
}

/** The newest stored message of a session. */
export interface NewestRecord {
  readonly ref: SessionRef;
  readonly bytes: Uint8Array;
  /** Its sequence number in the stream. */
  readonly seq: number;
}

/** A session whose newest record no replica serves, and the error. */
export interface NotServed {
  readonly ref: SessionRef;
  readonly bytes: null;
  readonly problem: RecordNotServedError;
}

/** Reads the newest record of a session without an index entry; null if the session has been deleted. @internal */
export async function readApart(nc: NatsConnection, ref: SessionRef): Promise<NewestRecord | NotServed | null> {
  try {
    return await lastStored(nc, ref);
  } catch (problem) {
    if (problem instanceof RecordNotServedError) return { ref, bytes: null, problem };
    throw problem;
  }
}

/**
 * The ids of all sessions of a tenant, read from the subject index of the streams. Empty if the streams do not exist.
 * @internal
 */
export async function sessionIds(nc: NatsConnection, tenant: string): Promise<string[]> {
  const filter = subjects.tenantJournals(tenant);
  const found = await Promise.all(JOURNAL_STREAMS.map((stream) => storedSubjects(nc, stream, filter)));
  return found.flat().flatMap((subject) => parseJournalSubject(subject)?.sessionId ?? []);
}

/** The subjects in the index of a stream that match a filter; none if the stream does not exist. @internal */
export async function storedSubjects(nc: NatsConnection, stream: string, filter: string): Promise<string[]> {
  const reader = createStreamReader(wireOf(nc), stream);
  const list = async () => {
    const found: string[] = [];
    for await (const subject of reader.subjects(filter)) found.push(subject);
    return found;
  };
  return (await nullIfNoStream(retryRequest(list))) ?? [];
}

/** Yields records by their dense numbers: skips repeated ones, throws for a missing one. */
async function* densely(
  nc: NatsConnection,
  ref: SessionRef,
  from: JournalStart,
  messages: AsyncIterable<JsMsg>,
  seen: ReadSoFar,
): AsyncGenerator<StoredJournalRecord, void, undefined> {
  const decoder = new RecordDecoder(nc, ref.tenant);
  let expected: number | null = seen.place && seen.place.n + 1;
  for await (const message of messages) {
    const n = numberOf(message.data);
    // The decoder reports records without a number.
    if (n !== null) {
      if (expected !== null && n < expected) continue;
      const first = from === 'newest' ? n : 1;
      if (n !== (expected ?? first)) throw new JournalGapError(ref.sessionId, expected ?? first, n);
      expected = n + 1;
      seen.place = { n, seq: message.seq };
      // Records before `from` are counted and not decoded, because decoding is expensive.
      if (from !== 'newest' && n < from) continue;
    }
    yield { ...(await decoder.decode(message.data)), bytes: message.data, seq: message.seq };
  }
}

function numberOf(bytes: Uint8Array): number | null {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(bytes));
    const n = (value as { n?: unknown } | null)?.n;
    return typeof n === 'number' ? n : null;
  } catch {
    // Not JSON: the decoder reports it with a code.
    return null;
  }
}

/**
 * Reads a journal that may not exist yet.
 * @returns its records; none for an unknown session.
 * @throws all other errors of the journal.
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
