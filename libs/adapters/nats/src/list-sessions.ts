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
  for (const stream of JOURNAL_STREAMS) yield* sessionsIn(nc, stream, tenant);
}

async function* sessionsIn(
  nc: NatsConnection,
  stream: string,
  tenant: string,
): AsyncGenerator<SessionRef, void, undefined> {
  const wire = wireOf(nc);
  const filter = subjects.tenantJournals(tenant);
  let offset = 0;
  let total = 1;
  while (offset < total) {
    const query = new TextEncoder().encode(JSON.stringify({ subjects_filter: filter, offset }));
    const answer = answerOf<SubjectsAnswer>(await wire.request(`$JS.API.STREAM.INFO.${stream}`, query));
    if (answer.error) throw new NatsRefusedError('listing sessions', answer.error);
    const page = Object.keys(answer.state?.subjects ?? {});
    if (page.length === 0) return;
    for (const subject of page) {
      const ref = parseJournalSubject(subject);
      if (ref) yield ref;
    }
    offset += page.length;
    total = answer.total ?? 0;
  }
}
