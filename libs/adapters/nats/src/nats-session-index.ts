/** The index of sessions on a stream: the newest message on a session's subject is its entry, or a mark. */
import { createStreamReader, storeMessage, wireOf } from '@coxswain/bus';
import type { SessionIndex } from '@coxswain/ports';
import { parseJournalSubject, type SessionRef, STREAMS, subjects } from '@coxswain/protocol';
import { headers, type NatsConnection } from '@nats-io/nats-core';
import { ensureIndexStream } from './ensure-streams.ts';
import { journalSubjects } from './list-sessions.ts';
import { journalReaders } from './nats-journal.ts';

/**
 * The payload of a mark. It is not empty, because an empty message ends a streamed response between accounts. A tenant
 * that reads the index would receive no entry after it.
 * Source: `handleServiceImport` in https://github.com/nats-io/nats-server/blob/main/server/client.go.
 */
const MARK = '{}';
/** TTL of the empty message that removes an entry. It only has to outlive a lagging replica. */
const PRUNED_TTL = '60s';

/** Creates the session index on this connection. All methods throw NatsUnavailableError, NatsRefusedError. */
export function createNatsSessionIndex(nc: NatsConnection): SessionIndex {
  const wire = wireOf(nc);
  const entries = createStreamReader(wire, STREAMS.sessions);
  const journalOf = journalReaders(nc);
  /** Writes an entry. @returns its sequence; null if the expected last sequence was wrong. */
  const write = async (subject: string, payload: string, head = headers()): Promise<number | null> => {
    const bytes = new TextEncoder().encode(payload);
    return (await storeMessage(nc, 'writing to the index of sessions', subject, bytes, head))?.seq ?? null;
  };
  return {
    async mark(ref) {
      return (await write(subjects.sessionEntry(ref), MARK)) as number;
    },
    async put(ref, entry, revision) {
      const head = headers();
      head.set('Nats-Expected-Last-Subject-Sequence', String(revision));
      return (await write(subjects.sessionEntry(ref), JSON.stringify(entry), head)) !== null;
    },
    async prune(ref) {
      const subject = subjects.sessionEntry(ref);
      // Read the entry before the journal: a session that starts meanwhile writes another entry, and this write fails.
      const entry = await entries.leaderLast(subject);
      if (!entry || (await journalOf(ref).leaderLast(subjects.journal(ref)))) return;
      const head = headers();
      head.set('Nats-Expected-Last-Subject-Sequence', String(entry.seq));
      head.set('Nats-TTL', PRUNED_TTL);
      await write(subject, '', head);
    },
    async missing() {
      // Compare sessions, not counts: marks of sessions that were never started count as well. List journals before
      // entries: a session that starts meanwhile has its entry before its first record.
      const found = new Map<string, SessionRef>();
      for await (const subject of journalSubjects(nc, subjects.journals)) {
        const ref = parseJournalSubject(subject);
        if (ref) found.set(subjects.sessionEntry(ref), ref);
      }
      for await (const subject of entries.subjects(subjects.sessionEntries)) found.delete(subject);
      return [...found.values()];
    },
    ensure: () => ensureIndexStream(nc),
  };
}
