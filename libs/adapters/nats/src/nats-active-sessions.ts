/** The notes of active sessions: one key each, written under the fence of its own revision where it is taken back. */
import type { ActiveSession, ActiveSessions } from '@coxswain/ports';
import { ActiveNote, parseActiveSession, STREAMS, subjects } from '@coxswain/protocol';
import { headers, type NatsConnection } from '@nats-io/nats-core';
import { answerOf, isWrongSequence, NatsRefusedError, NatsUnavailableError, type PublishAck } from './nats-status.ts';
import { readEach, readKeys, reportedSubjects, valueIn } from './read-keys.ts';
import { createStreamReader, type StoredMessage } from './stream-reader.ts';
import { wireOf } from './wire.ts';

/** A key that was taken back leaves a mark; it need only outlive a replica that lags. */
const MARK_TTL = '60s';

/** Notes on this connection. All throw NatsUnavailableError, NatsRefusedError. */
export function createNatsActiveSessions(nc: NatsConnection): ActiveSessions {
  const wire = wireOf(nc);
  const reader = createStreamReader(wire, `KV_${STREAMS.active}`);
  const write = async (subject: string, payload: string, head = headers()): Promise<number | null> => {
    const { error, seq } = answerOf<PublishAck>(await wire.request(subject, new TextEncoder().encode(payload), head));
    if (error && isWrongSequence(error)) return null;
    if (error?.code === 503) throw new NatsUnavailableError(error.description);
    if (error || seq === undefined)
      throw new NatsRefusedError('noting an active session', error ?? { code: 500, err_code: 0, description: 'empty' });
    return seq;
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
      const [notes, reported] = await Promise.all([
        readKeys(nc, STREAMS.active, filter, Number.POSITIVE_INFINITY).then((found) => new Map(found)),
        reportedSubjects(reader, filter),
      ]);
      // Replicas of this bucket have been seen to differ for good after kills, and a note that is missed strands its session.
      const missed = reported.filter((subject) => !notes.has(subject));
      for (const note of await readEach(missed, (subject) => reader.leaderLast(subject))) notes.set(note.subject, note);
      return [...notes.values()].flatMap((stored) => activeIn(stored) ?? []);
    },
  };
}

function activeIn({ subject, seq, data, headers: head }: StoredMessage): ActiveSession | null {
  const ref = parseActiveSession(subject);
  if (!ref || head.get('KV-Operation') !== '') return null;
  // Whatever stands there, the session may have work: who works on it is all that may not be known.
  return { ref, host: valueIn(data, ActiveNote)?.host ?? null, revision: seq };
}
