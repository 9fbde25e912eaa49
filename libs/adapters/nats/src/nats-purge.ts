/** The purge port on JetStream: takes a connection that may purge streams, which no host's may. */

import type { Purge, StoredBlob } from '@coxswain/ports';
import {
  BLOB_SUBJECTS,
  BLOBS_STREAM,
  deletedAbout,
  JOURNAL_STREAMS,
  journalStreamOf,
  parseJournalSubject,
  RecordNotServedError,
  readAbout,
  type SessionRef,
  STREAMS,
  subjects,
  tombstoneIn,
} from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { journalSubjects } from './list-sessions.ts';
import { createNatsActiveSessions } from './nats-active-sessions.ts';
import { createNatsJournal, journalReaders } from './nats-journal.ts';
import { createNatsSessionIndex } from './nats-session-index.ts';
import { answerOf, isWrongSequence, NatsRefusedError, type PublishAck } from './nats-status.ts';
import { createNatsBlobs, fencedRollup } from './nats-storage.ts';
import { streamTimeMs } from './nats-timers.ts';
import { createStreamReader, type StoredMessage } from './stream-reader.ts';
import { tellHost } from './tell-host.ts';
import { wireOf } from './wire.ts';

/** Messages per request while a stream is read from end to end. */
const READ_BATCH = 256;

interface StreamState {
  readonly state?: { readonly messages?: number; readonly last_seq?: number };
}

/** A purge on this connection. All throw NatsUnavailableError, NatsRefusedError, NotPermittedError. */
export function createNatsPurge(nc: NatsConnection): Purge {
  const wire = wireOf(nc);
  const journalOf = journalReaders(nc);
  const blobs = createStreamReader(wire, BLOBS_STREAM);
  const encode = (value: object) => new TextEncoder().encode(JSON.stringify(value));

  async function purge(stream: string, filter: string, seq?: number): Promise<void> {
    const request = { filter, ...(seq === undefined ? {} : { seq }) };
    const { error } = answerOf<object>(await wire.request(`$JS.API.STREAM.PURGE.${stream}`, encode(request)));
    if (error) throw new NatsRefusedError(`purging ${filter}`, error);
  }

  async function infoOf(stream: string): Promise<StreamState> {
    const answer = answerOf<StreamState>(await wire.request(`$JS.API.STREAM.INFO.${stream}`, new Uint8Array()));
    if (answer.error) throw new NatsRefusedError(`looking at ${stream}`, answer.error);
    return answer;
  }

  /**
   * Every message of a journal stream, in order, up to the newest at the time of the call.
   * @throws RecordNotServedError after the last one where fewer were read than the stream has: a caller that looks for what no
   *   record refers to must not decide by a part of them.
   */
  async function* allRecords(stream: string): AsyncGenerator<StoredMessage, void, undefined> {
    const before = (await infoOf(stream)).state;
    let read = 0;
    for await (const message of all(stream, subjects.journals, before?.last_seq ?? 0)) {
      read++;
      yield message;
    }
    // A purge meanwhile takes records away that were counted before.
    const counted = Math.min(before?.messages ?? 0, (await infoOf(stream)).state?.messages ?? 0);
    if (read < counted) throw new RecordNotServedError(stream, subjects.journals, null);
  }

  /** Every message of a stream on a subject, in order, up to the one at `end`. */
  async function* all(stream: string, subject: string, end: number): AsyncGenerator<StoredMessage, void, undefined> {
    const reader = createStreamReader(wire, stream);
    for (let from = 1; from <= end; ) {
      let page = await reader.batch(subject, from, READ_BATCH);
      if (page.length === 0) {
        // A replica that lags behind, or the end: the leader knows.
        const next = await reader.leaderNext(subject, from);
        if (!next) return;
        page = [next];
      }
      for (const message of page) {
        if (message.seq > end) return;
        yield message;
        from = message.seq + 1;
      }
    }
  }

  return {
    // No session has this subject: its partition is none.
    check: () => purge(STREAMS.snapshots, subjects.snapshots.replaceAll('*', '-')),
    async journalBefore(ref, fence) {
      // Nothing stands before the first place, and the server would take a purge up to there for one of everything.
      if (fence > 1) await purge(journalStreamOf(ref.sessionId), subjects.journal(ref), fence);
    },
    async hasBefore(ref: SessionRef, fence: number) {
      const first = await journalOf(ref).leaderNext(subjects.journal(ref), 1);
      return first !== null && first.seq < fence;
    },
    snapshots: (ref) => purge(STREAMS.snapshots, subjects.snapshot(ref)),
    timers: (ref) => purge(STREAMS.timers, subjects.sessionTimers(ref)),
    nowMs: () => streamTimeMs(nc, BLOBS_STREAM),
    async deletedSince(place) {
      const read = await Promise.all(
        JOURNAL_STREAMS.map(async (stream) => {
          const from = place?.[stream];
          if (from === undefined)
            return { stream, next: ((await infoOf(stream)).state?.last_seq ?? 0) + 1, refs: [], isAtEnd: true };
          const page = await createStreamReader(wire, stream).gaplessBatch(subjects.journals, from, READ_BATCH);
          const refs = page.flatMap(({ subject, data }) => (tombstoneIn(data) && parseJournalSubject(subject)) || []);
          return { stream, next: (page.at(-1)?.seq ?? from - 1) + 1, refs, isAtEnd: page.length === 0 };
        }),
      );
      return {
        place: Object.fromEntries(read.map(({ stream, next }) => [stream, next])),
        refs: read.flatMap(({ refs }) => refs),
        isAtEnd: read.every(({ isAtEnd }) => isAtEnd),
      };
    },
    async tenants() {
      const tenants = new Set<string>();
      for await (const subject of journalSubjects(nc, subjects.journals)) {
        const ref = parseJournalSubject(subject);
        if (ref) tenants.add(ref.tenant);
      }
      return [...tenants].sort();
    },
    async *records() {
      for (const stream of JOURNAL_STREAMS) for await (const { data } of allRecords(stream)) yield data;
    },
    async *blobs() {
      const end = (await infoOf(BLOBS_STREAM)).state?.last_seq ?? 0;
      for await (const { data, seq, timeMs } of all(BLOBS_STREAM, BLOB_SUBJECTS.abouts, end))
        yield { sha256: readAbout(data).name, storedAtMs: timeMs, revision: seq };
    },
    async blob({ sha256, revision }: StoredBlob) {
      const subject = BLOB_SUBJECTS.about(sha256);
      const about = await blobs.leaderLast(subject);
      if (about?.seq !== revision) return false;
      // First that it is gone, under the fence: whoever stores it now stores it anew, under another name for its bytes.
      const marked = answerOf<PublishAck>(
        await wire.request(subject, deletedAbout(about.data), fencedRollup(revision)),
      );
      if (marked.error && isWrongSequence(marked.error)) return false;
      if (marked.error || marked.seq === undefined)
        throw new NatsRefusedError('deleting a blob', marked.error ?? { code: 500, err_code: 0, description: 'empty' });
      await purge(BLOBS_STREAM, BLOB_SUBJECTS.chunks(readAbout(about.data).nuid));
      await purge(BLOBS_STREAM, subject, marked.seq + 1);
      return true;
    },
  };
}

/**
 * What deleting sessions needs of a bus: their stores, the right to purge them, and a way to reach the host of a session.
 * @throws NotPermittedError for a key that may not purge; what the stores throw.
 */
export async function openNatsDeletion(nc: NatsConnection) {
  const purge = createNatsPurge(nc);
  await purge.check();
  return {
    journal: createNatsJournal(nc),
    blobs: createNatsBlobs(nc),
    active: createNatsActiveSessions(nc),
    index: createNatsSessionIndex(nc),
    purge,
    tellHost: (ref: SessionRef) => tellHost(nc, ref),
  };
}
