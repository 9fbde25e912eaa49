/** Reads journals: one session's records in order and then as they come, and the newest record of every session. */
import {
  decodeRecord,
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
import { BusNotPreparedError, JournalGapError } from './client-errors.ts';
import { RecordDecoder } from './large-fields.ts';
import { isNotPermitted } from './not-permitted.ts';
import { isStreamNotFound } from './send-command.ts';

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
}

/** How long one request to the store may take. */
const READ_TIMEOUT_MS = 10_000;

/**
 * The session's records from record `from` on, and then live: every record once, in order. Ends only when the signal
 * aborts or the caller stops. A session that does not exist yet is waited for.
 * @throws JournalGapError when a record is missing, RecordUnreadableError when one cannot be read,
 *   BusNotPreparedError when no session host has used this bus.
 */
export async function* followJournal(
  bus: JournalBus,
  ref: SessionRef,
  from = 1,
  signal?: AbortSignal,
): AsyncGenerator<StoredJournalRecord, void, undefined> {
  // The filter is one string: only then may a permission be bound to this session's subject.
  const consumer = await orderedConsumer(bus, journalStreamOf(ref.sessionId), {
    filter_subjects: subjects.journal(ref),
  });
  yield* densely(bus, ref, from, messagesOf(consumer, signal));
}

/**
 * The session's records that are stored now, and then the end.
 * @throws SessionDeletedError before the first record where it is deleted, also where records of it are there still.
 */
export async function* readJournal(
  bus: JournalBus,
  ref: SessionRef,
  from = 1,
): AsyncGenerator<StoredJournalRecord, void, undefined> {
  const newest = await lastBytes(bus, ref);
  const tombstone = newest && tombstoneIn(newest);
  if (tombstone) throw new SessionDeletedError(tombstone);
  const consumer = await orderedConsumer(bus, journalStreamOf(ref.sessionId), {
    filter_subjects: subjects.journal(ref),
  });
  yield* densely(bus, ref, from, storedMessagesOf(consumer));
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

/** Connections whose user may read its tenant's journals alone: the leader's reads are of a whole stream. */
const tenantsOwn = new WeakSet<NatsConnection>();

async function lastBytes(bus: JournalBus, ref: SessionRef): Promise<Uint8Array | null> {
  if (tenantsOwn.has(bus.nc)) return replicasLastBytes(bus.nc, ref);
  const manager = await jetstreamManager(bus.nc, { checkAPI: false, timeout: READ_TIMEOUT_MS });
  try {
    const message = await manager.streams.getMessage(journalStreamOf(ref.sessionId), {
      last_by_subj: subjects.journal(ref),
    });
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
  const answer = await nc.request(subject, '', { timeout: READ_TIMEOUT_MS });
  return answer.headers?.code === 404 ? null : answer.data;
}

/** The newest record of every session of a tenant, in the order in which they were written. None on an unused bus. */
export async function* newestRecords(
  bus: JournalBus,
  tenant: string,
): AsyncGenerator<{ readonly ref: SessionRef; readonly bytes: Uint8Array }, void, undefined> {
  let consumers: readonly Consumer[];
  try {
    consumers = await Promise.all(
      JOURNAL_STREAMS.map((stream) =>
        orderedConsumer(bus, stream, {
          filter_subjects: subjects.tenantJournals(tenant),
          deliver_policy: DeliverPolicy.LastPerSubject,
        }),
      ),
    );
  } catch (error) {
    if (error instanceof BusNotPreparedError) return;
    throw error;
  }
  for await (const message of mergedByTime(consumers.map(storedMessagesOf))) {
    const ref = parseJournalSubject(message.subject);
    if (ref) yield { ref, bytes: message.data };
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
        manager.streams.info(stream, { subjects_filter: subjects.tenantJournals(tenant) }),
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

async function orderedConsumer(
  bus: JournalBus,
  stream: string,
  options: { filter_subjects: string; deliver_policy?: DeliverPolicy },
): Promise<Consumer> {
  try {
    return await bus.js.consumers.get(stream, options);
  } catch (error) {
    if (isStreamNotFound(error)) throw new BusNotPreparedError({ cause: error });
    throw error;
  }
}

/** What the store holds for this consumer, up to the moment when nothing more waits. */
async function* storedMessagesOf(consumer: Consumer): AsyncGenerator<JsMsg, void, undefined> {
  const { num_pending: waiting } = await consumer.info(true);
  if (waiting === 0) return dropConsumer(consumer);
  for await (const message of messagesOf(consumer)) {
    yield message;
    if (message.info.pending === 0) return;
  }
}

/** Messages without end. The library fetches in batches, so what waits here is bounded by one batch. */
async function* messagesOf(consumer: Consumer, signal?: AbortSignal): AsyncGenerator<JsMsg, void, undefined> {
  const messages = await consumer.consume({ max_messages: 200 });
  const stop = () => messages.stop();
  signal?.addEventListener('abort', stop, { once: true });
  if (signal?.aborted) stop();
  try {
    // Also where it is stopped already: what has never been read does not say that it has closed.
    for await (const message of messages) {
      if (signal?.aborted) return;
      yield message;
      if (signal?.aborted) return;
    }
  } finally {
    signal?.removeEventListener('abort', stop);
    await messages.close();
    await dropConsumer(consumer);
  }
}

async function dropConsumer(consumer: Consumer): Promise<void> {
  try {
    await consumer.delete();
  } catch {
    // It ends by itself a few minutes after its last request; deleting it now is only tidier.
  }
}

/** Records by their dense numbers: a repeated one is left out, a missing one is an error. */
async function* densely(
  bus: JournalBus,
  ref: SessionRef,
  from: number,
  messages: AsyncIterable<JsMsg>,
): AsyncGenerator<StoredJournalRecord, void, undefined> {
  const decoder = new RecordDecoder(bus, ref.tenant);
  let expected: number | null = null;
  for await (const message of messages) {
    const n = numberOf(message.data);
    // What cannot even be numbered goes to the decoder, which says what is wrong with it.
    if (n !== null) {
      if (expected !== null && n < expected) continue;
      if (n !== (expected ?? 1)) throw new JournalGapError(ref.sessionId, expected ?? 1, n);
      expected = n + 1;
      // Records before `from` are counted but not decoded, which is what costs.
      if (n < from) continue;
    }
    yield { record: await decoder.decode(message.data), bytes: message.data };
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
