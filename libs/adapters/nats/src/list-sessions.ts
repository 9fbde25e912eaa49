/** Which sessions have a journal. */
import { JOURNAL_STREAMS, parseJournalSubject, type SessionRef, subjects } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { answerOf, NatsRefusedError } from './nats-status.ts';
import { wireOf } from './wire.ts';

interface SubjectsAnswer {
  readonly total?: number;
  readonly state?: { readonly subjects?: Readonly<Record<string, number>> };
}

/**
 * All sessions of a tenant that have a record, in no order. The server counts them page by page; a session that comes
 * while they are being counted may be missing or stand twice.
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
  for (const stream of JOURNAL_STREAMS) yield* subjectsIn(nc, stream, filter);
}

async function* subjectsIn(
  nc: NatsConnection,
  stream: string,
  filter: string,
): AsyncGenerator<string, void, undefined> {
  const wire = wireOf(nc);
  let offset = 0;
  let total = 1;
  while (offset < total) {
    const query = new TextEncoder().encode(JSON.stringify({ subjects_filter: filter, offset }));
    const answer = answerOf<SubjectsAnswer>(await wire.request(`$JS.API.STREAM.INFO.${stream}`, query));
    if (answer.error) throw new NatsRefusedError('listing sessions', answer.error);
    const page = Object.keys(answer.state?.subjects ?? {});
    if (page.length === 0) return;
    yield* page;
    offset += page.length;
    total = answer.total ?? 0;
  }
}
