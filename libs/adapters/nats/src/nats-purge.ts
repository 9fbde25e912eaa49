/**
 * The purge port on JetStream. Its connection needs permission to purge streams, which the role `host` does not have.
 */
import { askJetStream, createStreamReader, type StoredMessage, storeMessage, streamInfo, wireOf } from '@coxswain/bus';
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
import { createNatsBlobs, fencedRollup } from './nats-storage.ts';
import { streamTimeMs } from './nats-timers.ts';
import { notifyHost } from './notify-host.ts';

/** Maximum messages per request while a whole stream is read. */
const READ_BATCH = 256;

/**
 * Creates the purge port on this connection. All methods throw NatsUnavailableError, NatsRefusedError,
 * NotPermittedError. `records` also throws RecordNotServedError.
 */
export function createNatsPurge(nc: NatsConnection): Purge {
  const wire = wireOf(nc);
  const journalOf = journalReaders(nc);
  const blobs = createStreamReader(wire, BLOBS_STREAM);

  async function purge(stream: string, filter: string, seq?: number): Promise<void> {
    const request = { filter, ...(seq === undefined ? {} : { seq }) };
    await askJetStream(wire, `purging ${filter}`, `STREAM.PURGE.${stream}`, request);
  }

  /**
   * Reads every record, stream by stream, and then those that were appended meanwhile. Without the second pass, the
   * references of a fork are missed: its stream was read before it, and its origin is purged before its stream is read.
   * @throws RecordNotServedError after the last record if a stream has more than were read. A caller that searches for
   *   unreferenced blobs must not decide from an incomplete read.
   */
  async function* allRecords(): AsyncGenerator<StoredMessage, void, undefined> {
    const stateOf = async (stream: string) => (await streamInfo(nc, stream)).state;
    const reads = JOURNAL_STREAMS.map((stream) => ({ stream, end: 0, count: 0 }));
    for (const read of [...reads, ...reads]) {
      const { last_seq: end } = await stateOf(read.stream);
      for await (const message of all(read.stream, subjects.journals, read.end + 1, end)) {
        read.count++;
        yield message;
      }
      read.end = end;
    }
    for (const { stream, end, count } of reads) {
      const { messages, last_seq: newest } = await stateOf(stream);
      // What is there now, without later records, was there when it was read. Purged records do not count.
      if (count < messages - (newest - end)) throw new RecordNotServedError(stream, subjects.journals, null);
    }
  }

  /** Reads the messages of a stream on a subject, in order, from the sequence `first` to `end`. */
  async function* all(
    stream: string,
    subject: string,
    first: number,
    end: number,
  ): AsyncGenerator<StoredMessage, void, undefined> {
    const reader = createStreamReader(wire, stream);
    for (let from = first; from <= end; ) {
      let page = await reader.batch(subject, from, READ_BATCH);
      if (page.length === 0) {
        // The replica lags behind, or this is the end: ask the leader.
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
    // It deletes nothing: `-` is not a partition, so no session has this subject. It only checks the permission.
    check: () => purge(STREAMS.snapshots, subjects.snapshots.replaceAll('*', '-')),
    async journalBefore(ref, fence) {
      // No record precedes sequence 1, and the server treats a purge with `seq: 1` as a purge of the whole subject.
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
            return { stream, next: (await streamInfo(nc, stream)).state.last_seq + 1, refs: [], isAtEnd: true };
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
      for await (const { data } of allRecords()) yield data;
    },
    async *blobs() {
      const end = (await streamInfo(nc, BLOBS_STREAM)).state.last_seq;
      for await (const { data, seq, timeMs } of all(BLOBS_STREAM, BLOB_SUBJECTS.abouts, 1, end))
        yield { sha256: readAbout(data).name, storedAtMs: timeMs, revision: seq };
    },
    async blob({ sha256, revision }: StoredBlob) {
      const subject = BLOB_SUBJECTS.about(sha256);
      const about = await blobs.leaderLast(subject);
      if (about?.seq !== revision) return false;
      // First mark the blob as deleted, only if it is still at this revision. A client that stores the blob from now on
      // stores its bytes again, under a new object id.
      const mark = deletedAbout(about.data);
      const marked = await storeMessage(nc, 'deleting a blob', subject, mark, fencedRollup(revision));
      if (marked === null) return false;
      await purge(BLOBS_STREAM, BLOB_SUBJECTS.chunks(readAbout(about.data).nuid));
      await purge(BLOBS_STREAM, subject, marked.seq + 1);
      return true;
    },
  };
}

/**
 * Opens the ports that the deletion of sessions needs: the stores, the purge, and a notification of a session's host.
 * @throws NotPermittedError if this user may not purge; NatsUnavailableError, NatsRefusedError.
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
    notifyHost: (ref: SessionRef) => notifyHost(nc, ref),
  };
}
