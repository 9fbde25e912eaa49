/**
 * The retention job: purges what tombstones say is deleted. A deletion by the command `delete` is durable with its tombstone; hosts have
 * no right to purge, so that the rest is this job's.
 *
 * RETENTION-1  Nothing is purged without a tombstone: the job never writes one.
 * RETENTION-2  At its start the job looks at the newest record of every session; from then on it reads what is appended. So a deletion is
 *     found whether or not the job was running, and none is lost with a message.
 * RETENTION-3  What fails is tried again until it is done. The place that was read moves on only with the sessions that were found.
 */
import type { Log, PurgesWithin } from '@coxswain/ports';
import { BOUNDS, type SessionRef, subjects, tombstoneIn } from '@coxswain/protocol';
import { SIDE_BY_SIDE } from '../hosting/load-turns.ts';
import { type DeletePorts, deleteSession } from './delete-session.ts';
import { sweepBlobs } from './sweep.ts';

/** How the job works; milliseconds. */
export interface RetentionOptions {
  /** Between two looks at the journals. Default 5,000. */
  readonly lookEveryMs?: number;
  /** Between two sweeps of files, the first one as long after the start: it reads every record. Default 24 hours. */
  readonly sweepFilesEveryMs?: number;
}

/** A retention job that runs. */
export interface RetentionJob {
  /** What it promises. */
  readonly within: PurgesWithin;
  /** The outcome of the last look: rejects with its error. Resolves before the first one. */
  ping(): Promise<void>;
  /** Ends it behind the purge of the session at hand. Contract: does not reject. */
  stop(): Promise<void>;
}

const LOOK_EVERY_MS = 5_000;
const HOUR_MS = 3_600_000;
/** Sessions in memory that wait for their purge; more are read later. */
const WAITING_MAX = 10_000;
/** A look waits this long for forks that still copy a session; the next one goes on. */
const FORKS_WITHIN_MS = 10_000;
/** A look, the forks, a host that has the session in memory, and the purges themselves, with as much again to spare. */
const RECORDS_WITHIN_MS = 60_000;

/**
 * Starts the job.
 * @param ports of a connection that may purge.
 */
export function startRetentionJob(
  ports: DeletePorts,
  log: Log,
  { lookEveryMs = LOOK_EVERY_MS, sweepFilesEveryMs = 24 * HOUR_MS }: RetentionOptions = {},
): RetentionJob {
  const { clock, purge, journal } = ports;
  const waiting = new Map<string, SessionRef>();
  let place: Parameters<typeof purge.deletedSince>[0] = null;
  const stopped = new AbortController();
  let last: Error | null = null;

  const found = (ref: SessionRef) => waiting.set(subjects.journal(ref), ref);

  /** Deletions of before the job ran: the newest record of each session says. */
  async function findOlder(): Promise<void> {
    for (const tenant of await purge.tenants()) {
      for await (const ref of journal.sessions(tenant)) {
        if (stopped.signal.aborted) return;
        const newest = await journal.last(ref);
        if (newest && tombstoneIn(newest.bytes) && (await purge.hasBefore(ref, newest.fence))) found(ref);
        if (waiting.size >= WAITING_MAX) await purgeWaiting();
      }
    }
  }

  async function findNew(): Promise<void> {
    while (!stopped.signal.aborted && waiting.size < WAITING_MAX) {
      const read = await purge.deletedSince(place);
      for (const ref of read.refs) found(ref);
      place = read.place;
      if (read.isAtEnd) return;
    }
  }

  async function purgeWaiting(): Promise<void> {
    const refs = [...waiting.values()];
    for (let at = 0; at < refs.length && !stopped.signal.aborted; at += SIDE_BY_SIDE)
      await Promise.all(refs.slice(at, at + SIDE_BY_SIDE).map(purgeOne));
  }

  async function purgeOne(ref: SessionRef): Promise<void> {
    const newest = await journal.last(ref);
    // RETENTION-1: without it the session would be deleted here.
    if (newest && tombstoneIn(newest.bytes)) {
      const deletion = await deleteSession(ports, ref, { forksWithinMs: FORKS_WITHIN_MS });
      if (deletion.status === 'refused' && deletion.code === 'session_being_copied') return;
      log.info(
        { session_id: ref.sessionId, tenant: ref.tenant, status: deletion.status },
        'a deleted session is purged',
      );
    }
    waiting.delete(subjects.journal(ref));
  }

  async function look(isFirst: boolean): Promise<void> {
    if (isFirst) {
      // The place first: what is deleted meanwhile is read behind it.
      place = (await purge.deletedSince(null)).place;
      await findOlder();
    }
    await findNew();
    await purgeWaiting();
  }

  const running = (async () => {
    let isFirst = true;
    let sweptMs = clock.monotonicMs();
    while (!stopped.signal.aborted) {
      try {
        await look(isFirst);
        isFirst = false;
        if (clock.monotonicMs() - sweptMs >= sweepFilesEveryMs) {
          sweptMs = clock.monotonicMs();
          const { deleted } = await sweepBlobs(purge);
          if (deleted > 0) log.info({ deleted }, 'files without a reference in any record are deleted');
        }
        last = null;
      } catch (error) {
        last = error as Error;
        log.error({ error: last.message }, 'deleted sessions are not purged; the next pass retries');
      }
      // Aborted, so that the timer does not keep the process alive after `stop`.
      if (!stopped.signal.aborted) await clock.sleep(lookEveryMs, stopped.signal);
    }
  })();

  return {
    within: { recordsMs: RECORDS_WITHIN_MS, filesMs: BOUNDS.unusedBlobKeptMs + sweepFilesEveryMs },
    async ping() {
      if (last) throw last;
    },
    async stop() {
      stopped.abort();
      await running;
    },
  };
}
