/** Lists the sessions that have a journal. */
import { createStreamReader, wireOf } from '@coxswain/bus';
import {
  JOURNAL_STREAMS,
  PARTITIONS_PER_JOURNAL_STREAM,
  parseJournalSubject,
  type SessionRef,
  subjects,
} from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';

/**
 * Lists the sessions of a tenant that have a record, in no order, as the streams' leaders report them. The server
 * returns pages, so a session that starts meanwhile may be missing or appear twice.
 * @throws NatsUnavailableError, NatsRefusedError.
 */
export async function* listSessions(nc: NatsConnection, tenant: string): AsyncGenerator<SessionRef, void, undefined> {
  for await (const subject of journalSubjects(nc, subjects.tenantJournals(tenant))) {
    const ref = parseJournalSubject(subject);
    if (ref) yield ref;
  }
}

/** Lists the subjects of the journals that match a filter, as {@link listSessions} does. */
export async function* journalSubjects(nc: NatsConnection, filter: string): AsyncGenerator<string, void, undefined> {
  for (const stream of JOURNAL_STREAMS) yield* createStreamReader(wireOf(nc), stream).subjects(filter);
}

/**
 * Lists the sessions of a partition that have a record, as {@link listSessions} does.
 * @throws NatsUnavailableError, NatsRefusedError.
 */
export async function* sessionsOf(nc: NatsConnection, partition: number): AsyncGenerator<SessionRef, void, undefined> {
  const stream = JOURNAL_STREAMS[Math.floor(partition / PARTITIONS_PER_JOURNAL_STREAM)] as string;
  for await (const subject of createStreamReader(wireOf(nc), stream).subjects(subjects.partitionJournals(partition))) {
    const ref = parseJournalSubject(subject);
    if (ref) yield ref;
  }
}
