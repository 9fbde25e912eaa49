/** Reads journals: one session's records in order and then as they come, and the newest record of every session. */
import {
  decodeRecord,
  isTenantsInbox,
  JOURNAL_STREAMS,
  type JournalRecord,
  journalStreamOf,
  parseJournalSubject,
  SessionDeletedError,
  type SessionRef,
  subjects,
  tombstoneIn,
} from '@coxswain/protocol';
import { type Consumer, DeliverPolicy, type JetStreamClient, type JsMsg, jetstreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/nats-core';
import { answeredInTime, askStore } from './ask-store.ts';
import { BusNotPreparedError, JournalGapError } from './client-errors.ts';
import { RecordDecoder } from './large-fields.ts';
import { isNotPermitted } from './not-permitted.ts';
import { dropConsumer, messagesOf, type OrderedSource, orderedConsumer } from './ordered-messages.ts';
import { isStreamNotFound } from './send-command.ts';
import type { JournalStart } from './transport.ts';

/** The bus as this module needs it. */
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

/** A record by its number, and where the store has it: whoever goes on behind it need not count up to it again. */
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
const READ_TIMEOUT_MS = 5_000;

/**
 * How soon a request for messages that was lost is made again: after two to three heartbeats. By default the library takes 45
 * seconds. Whoever reads what is stored waits for it, and what a live reader waits for may be hours away.
 */
const STORED = { expires: 5_000, idle_heartbeat: 1_000 };
const LIVE = { expires: 30_000, idle_heartbeat: 2_000 };

/**
 * The session's records from record `from` on, and then live: every record once, in order. Ends only when the signal
 * aborts or the caller stops. A session that does not exist yet is waited for. From `newest` on nothing older is read, however
 * long the journal is.
 * @throws JournalGapError when a record is missing, RecordUnreadableError when one cannot be read,
 *   BusNotPreparedError when no session host has used this bus, StoreUnavailableError when it does not answer at the beginning.
 */
export async function* followJournal(
  bus: JournalBus,
  ref: SessionRef,
  from: JournalStart = 1,
  signal?: AbortSignal,
): AsyncGenerator<StoredJournalRecord, void, undefined> {
  // The filter is one string: only then may a permission be bound to this session's subject.
  const source = {
    bus,
    stream: journalStreamOf(ref.sessionId),
    options: {
      filter_subjects: subjects.journal(ref),
      ...(from === 'newest' ? { deliver_policy: DeliverPolicy.LastPerSubject } : {}),
    },
  };
  yield* densely(
    bus,
    ref,
    from,
    messagesOf(source, await orderedConsumer(source), { ...LIVE, max_messages: AT_ONCE }, signal),
  );
}

/**
 * The session's records that are stored now, and then the end.
 * @throws JournalGapError where the record behind `after` is another one; SessionDeletedError before the first record where it is deleted, also where records of it are there still;
 *   StoreUnavailableError where the store says nothing for ten seconds at the beginning, or for forty later.
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
  const source = {
    bus,
    stream: journalStreamOf(ref.sessionId),
    options: {
      filter_subjects: subjects.journal(ref),
      ...(after ? { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: after.seq + 1 } : {}),
    },
  };
  const stored = storedMessagesOf(source, await orderedConsumer(source), atOnce);
  yield* densely(bus, ref, from, stored, (after?.n ?? 0) + 1);
}

/** The newest record of a session, or null where there is none. Read where writes are decided. */
export async function lastRecord(bus: JournalBus, ref: SessionRef): Promise<JournalRecord | null> {
  const bytes = await lastBytes(bus, ref);
  return bytes === null ? null : decodeRecord(bytes);
}

/**
 * The number of a session's newest record, also of one that this release cannot read; 0 where there is none.
 * @throws SessionDeletedError where it is deleted.
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

/** What is stored last of a session, a record or a tombstone; null where there is nothing. */
export async function lastBytes(bus: JournalBus, ref: SessionRef): Promise<Uint8Array | null> {
  if (tenantsOwn.has(bus.nc) || isTenantsInbox(bus.inboxPrefix)) return replicasLastBytes(bus.nc, ref);
  const manager = await jetstreamManager(bus.nc, { checkAPI: false, timeout: READ_TIMEOUT_MS });
  try {
    const message = await askStore(() =>
      manager.streams.getMessage(journalStreamOf(ref.sessionId), { last_by_subj: subjects.journal(ref) }),
    );
    return message === null ? null : message.data;
  } catch (error) {
    if (isStreamNotFound(error)) return null;
    if (!isNotPermitted(error)) throw error;
    tenantsOwn.add(bus.nc);
    return replicasLastBytes(bus.nc, ref);
  }
}

/** A permission can be bound to the subject that stands in the request's own. Any replica answers, and may lag a moment. */
async function replicasLastBytes(nc: NatsConnection, ref: SessionRef): Promise<Uint8Array | null> {
  const subject = `$JS.API.DIRECT.GET.${journalStreamOf(ref.sessionId)}.${subjects.journal(ref)}`;
  const answer = await askStore(() => nc.request(subject, '', { timeout: READ_TIMEOUT_MS }));
  return answer.headers?.code === 404 ? null : answer.data;
}

/** What is stored last of a session. */
export interface NewestRecord {
  readonly ref: SessionRef;
  readonly bytes: Uint8Array;
  /** When the store took it, nanoseconds since the epoch. */
  readonly writtenNs: bigint;
}

/** The newest record of every session of a tenant, in the order in which they were written. None on an unused bus. */
export async function* newestRecords(bus: JournalBus, tenant: string): AsyncGenerator<NewestRecord, void, undefined> {
  const options = {
    filter_subjects: subjects.tenantJournals(tenant),
    deliver_policy: DeliverPolicy.LastPerSubject,
  };
  let streams: readonly AsyncGenerator<JsMsg, void, undefined>[];
  try {
    streams = await Promise.all(
      JOURNAL_STREAMS.map(async (stream) => {
        const source = { bus, stream, options };
        return storedMessagesOf(source, await orderedConsumer(source));
      }),
    );
  } catch (error) {
    if (error instanceof BusNotPreparedError) return;
    throw error;
  }
  for await (const message of mergedByTime(streams)) {
    const ref = parseJournalSubject(message.subject);
    if (ref) yield { ref, bytes: message.data, writtenNs: message.timestampNanos };
  }
}

/** Messages of several streams, each in order of time, as one. */
async function* mergedByTime(
  streams: readonly AsyncGenerator<JsMsg, void, undefined>[],
): AsyncGenerator<JsMsg, void, undefined> {
  const heads = await Promise.all(
    streams.map(async (messages) => ({ messages, next: (await messages.next()).value ?? null })),
  );
  try {
    for (;;) {
      let oldest: (typeof heads)[number] | null = null;
      for (const head of heads) {
        if (head.next && (!oldest?.next || head.next.timestampNanos < oldest.next.timestampNanos)) oldest = head;
      }
      if (!oldest?.next) return;
      yield oldest.next;
      oldest.next = (await oldest.messages.next()).value ?? null;
    }
  } finally {
    await Promise.all(streams.map((messages) => messages.return()));
  }
}

/** The ids of all sessions of a tenant, read from the store's index of subjects alone. None on an unused bus. */
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

/** What the store holds for this consumer, up to the moment when nothing more waits. The consumer is deleted then. */
export async function* storedMessagesOf(
  source: OrderedSource,
  consumer: Consumer,
  atOnce = AT_ONCE,
): AsyncGenerator<JsMsg, void, undefined> {
  const { num_pending: waiting } = await consumer.info(true);
  if (waiting === 0) return dropConsumer(consumer);
  const nothingLeft = new AbortController();
  let delivered = 0;
  // What waited when it was counted may be deleted before it is delivered.
  const look = () =>
    void consumer.info().then(
      (info) => info.num_pending === 0 && info.delivered.consumer_seq <= delivered && nothingLeft.abort(),
      // A store that does not answer is given up by who waits.
      () => undefined,
    );
  const messages = messagesOf(source, consumer, { ...STORED, max_messages: atOnce }, nothingLeft.signal);
  // Whoever reads what is stored waits for nobody: the library would go on asking a store that has gone for ever.
  for await (const message of answeredInTime(messages, look)) {
    delivered = message.info.deliverySequence;
    yield message;
    if (message.info.pending === 0) return;
  }
}

/** Records by their dense numbers: a repeated one is left out, a missing one is an error. */
async function* densely(
  bus: JournalBus,
  ref: SessionRef,
  from: JournalStart,
  messages: AsyncIterable<JsMsg>,
  begins = 1,
): AsyncGenerator<StoredJournalRecord, void, undefined> {
  const decoder = new RecordDecoder(bus, ref.tenant);
  let expected: number | null = null;
  for await (const message of messages) {
    const n = numberOf(message.data);
    // What cannot even be numbered goes to the decoder, which says what is wrong with it.
    if (n !== null) {
      if (expected !== null && n < expected) continue;
      const first = from === 'newest' ? n : begins;
      if (n !== (expected ?? first)) throw new JournalGapError(ref.sessionId, expected ?? first, n);
      expected = n + 1;
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
