/** Which sessions have a journal. */
import {
  JOURNAL_STREAMS,
  PARTITIONS_PER_JOURNAL_STREAM,
  parseJournalSubject,
  type SessionRef,
  subjects,
} from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { createStreamReader } from './stream-reader.ts';
import { wireOf } from './wire.ts';

/**
 * All sessions of a tenant that have a record, in no order: what the streams' leaders report. The server lists them page by
 * page; a session that starts meanwhile may be missing or come twice.
 * @throws NatsUnavailableError, NatsRefusedError.
 */
export async function* listSessions(nc: NatsConnection, tenant: string): AsyncGenerator<SessionRef, void, undefined> {
  for await (const subject of journalSubjects(nc, subjects.tenantJournals(tenant))) {
    const ref = parseJournalSubject(subject);
    if (ref) yield ref;
  }
}

/** The subjects of all journals that a filter stands for, as {@link listSessions} reads them. */
export async function* journalSubjects(nc: NatsConnection, filter: string): AsyncGenerator<string, void, undefined> {
  for (const stream of JOURNAL_STREAMS) yield* createStreamReader(wireOf(nc), stream).subjects(filter);
}

/**
 * The sessions of a partition that have a record, as {@link listSessions} reads them.
 * @throws NatsUnavailableError, NatsRefusedError.
 */
export async function* sessionsOf(nc: NatsConnection, partition: number): AsyncGenerator<SessionRef, void, undefined> {
  const stream = JOURNAL_STREAMS[Math.floor(partition / PARTITIONS_PER_JOURNAL_STREAM)] as string;
  for await (const subject of createStreamReader(wireOf(nc), stream).subjects(subjects.partitionJournals(partition))) {
    const ref = parseJournalSubject(subject);
    if (ref) yield ref;
  }
}
