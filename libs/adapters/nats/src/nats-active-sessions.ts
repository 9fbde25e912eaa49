/** The notes of active sessions: one key per session. A note is removed only at the expected revision. */
import { createStreamReader, type StoredMessage, storeMessage, valueIn, wireOf } from '@coxswain/bus';
import type { ActiveSession, ActiveSessions } from '@coxswain/ports';
import { ActiveNote, parseActiveSession, STREAMS, subjects } from '@coxswain/protocol';
import { headers, type NatsConnection } from '@nats-io/nats-core';
import { readEach, readKeys, SMALL_READS_MAX } from './read-keys.ts';

/** TTL of the purge marker that a removed key leaves. It only has to outlive a lagging replica. */
const MARK_TTL = '60s';

/** Creates the port on this connection. All methods throw NatsUnavailableError, NatsRefusedError. */
export function createNatsActiveSessions(nc: NatsConnection): ActiveSessions {
  const wire = wireOf(nc);
  const reader = createStreamReader(wire, `KV_${STREAMS.active}`);
  const write = async (subject: string, payload: string, head = headers()): Promise<number | null> => {
    const bytes = new TextEncoder().encode(payload);
    return (await storeMessage(nc, 'noting an active session', subject, bytes, head))?.seq ?? null;
  };
  return {
    async note(ref, host) {
      const note: ActiveNote = { v: 1, host };
      return (await write(subjects.activeSession(ref), JSON.stringify(note))) as number;
    },
    async forget(ref, revision) {
      const head = headers();
      head.set('KV-Operation', 'PURGE');
      head.set('Nats-Rollup', 'sub');
      head.set('Nats-TTL', MARK_TTL);
      head.set('Nats-Expected-Last-Subject-Sequence', String(revision));
      await write(subjects.activeSession(ref), '', head);
    },
    async list(partition) {
      const filter = subjects.activeSessions(partition);
      const notes = new Map<string, StoredMessage>();
      for await (const note of readKeys(nc, STREAMS.active, filter, Number.POSITIVE_INFINITY))
        notes.set(note.subject, note);
      // Replicas of this bucket can differ permanently after a server is killed (observed). A missed note would leave
      // its session without a host, so the subjects that the leader reports are read as well.
      const missed: string[] = [];
      for await (const subject of reader.subjects(filter)) if (!notes.has(subject)) missed.push(subject);
      for await (const note of readEach(missed, SMALL_READS_MAX, (subject) => reader.leaderLast(subject)))
        notes.set(note.subject, note);
      return [...notes.values()].flatMap((stored) => activeIn(stored) ?? []);
    },
  };
}

function activeIn({ subject, seq, data, headers: head }: StoredMessage): ActiveSession | null {
  const ref = parseActiveSession(subject);
  if (!ref || head.get('KV-Operation') !== '') return null;
  // Even with an unreadable note the session may have work; only its owner is unknown.
  return { ref, host: valueIn(data, ActiveNote)?.host ?? null, revision: seq };
}
