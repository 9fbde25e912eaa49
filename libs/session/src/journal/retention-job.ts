/**
 * The retention job purges sessions that have a tombstone. The command `delete` is durable with its tombstone. Hosts have no
 * permission to purge, so this job does the rest. From time to time it also sweeps blobs (sweep.ts), while it purges: a
 * sweep may read for hours.
 *
 * RETENTION-1  No session is purged without a tombstone; the job never writes one.
 * RETENTION-2  At its start, the job reads the newest record of every session; then it reads each new tombstone. So it finds
 *              every deletion, also those made while it did not run.
 * RETENTION-3  A failed purge is repeated until it succeeds, and stops neither other purges nor the sweep. The read
 *              position advances only past tombstones whose sessions are in the list of sessions to purge.
 */
import type { Log, PurgesWithin } from '@coxswain/ports';
import { BOUNDS, RecordNotServedError, type SessionRef, subjects, tombstoneIn } from '@coxswain/protocol';
import { CONCURRENCY, forEachConcurrent } from '../hosting/load-limit.ts';
import { type DeletePorts, deleteSession } from './delete-from-outside.ts';
import { sweepBlobs } from './sweep.ts';

/** Intervals in milliseconds. */
export interface RetentionOptions {
  /** Pause between two rounds of reading the journals and purging. Default 5,000. */
  readonly lookEveryMs?: number;
  /**
   * Interval between the starts of sweeps of blobs, also before the first one: a sweep reads every record. A failed sweep
   * is repeated after 15 minutes, or after this interval if it is shorter. Default 24 hours.
   */
  readonly sweepFilesEveryMs?: number;
}

/** A running retention job. */
export interface RetentionJob {
  /** The times within which the job promises to purge. */
  readonly within: PurgesWithin;
  /**
   * The result of the last round, and of the last sweep: rejects with the error. Resolves before the first round has
   * ended.
   */
  ping(): Promise<void>;
  /** Stops after the purges in progress; ends a sweep in progress. Does not reject. */
  stop(): Promise<void>;
}

const LOOK_EVERY_MS = 5_000;
const HOUR_MS = 3_600_000;
/** A failed sweep is repeated after this time: it reads all records again. */
const SWEEP_AGAIN_MS = 15 * 60_000;
/** Once this many sessions wait for their purge, the job purges before it reads more. */
const WAITING_MAX = 10_000;
/** A purge waits this long for forks that still copy the session. The next round tries again. */
const FORKS_WITHIN_MS = 10_000;
/**
 * Twice the expected time of a purge: the pause, the waits for forks and for the session's host, and the purges before
 * it.
 */
const RECORDS_WITHIN_MS = 60_000;

/**
 * Starts the job.
 * @param ports ports of a connection with permission to purge.
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
  /** The failure of the last sweep. It stays until a sweep succeeds, because the passes between sweeps prove nothing. */
  let lastSweep: Error | null = null;

  const found = (ref: SessionRef) => waiting.set(subjects.journal(ref), ref);

  /** Finds deletions from before the job's start, by the newest record of each session. */
  async function findOlder(): Promise<void> {
    let some: SessionRef[] = [];
    let purgeAtMs = clock.monotonicMs() + lookEveryMs;
    const findSome = async () => {
      await forEachConcurrent(some, findOne);
      some = [];
      if (waiting.size < WAITING_MAX && clock.monotonicMs() < purgeAtMs) return;
      // Reading a very large bus takes longer than a deletion may wait.
      await findNew();
      await purgeWaiting().catch(() => {
        // The purge stays in the list. The round repeats it at its end, and reports it.
      });
      purgeAtMs = clock.monotonicMs() + lookEveryMs;
    };
    for (const tenant of await purge.tenants()) {
      for await (const ref of journal.sessions(tenant)) {
        if (stopped.signal.aborted) return;
        some.push(ref);
        if (some.length >= CONCURRENCY) await findSome();
      }
    }
    await findSome();
  }

  async function findOne(ref: SessionRef): Promise<void> {
    try {
      const newest = await journal.last(ref);
      if (newest && tombstoneIn(newest.bytes) && (await purge.hasBefore(ref, newest.fence))) found(ref);
    } catch (error) {
      if (!(error instanceof RecordNotServedError)) throw error;
      // Its purge reads the record again, and reports the failure. The other sessions do not wait for the repair.
      found(ref);
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

  function purgeWaiting(): Promise<void> {
    return forEachConcurrent([...waiting.values()], purgeOne);
  }

  async function purgeOne(ref: SessionRef): Promise<void> {
    if (stopped.signal.aborted) return;
    // To the end: in the next round, a session that cannot be purged now delays no other one.
    waiting.delete(subjects.journal(ref));
    found(ref);
    const newest = await journal.last(ref);
    // RETENTION-1: without this check, the job would delete a session without a tombstone.
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

  let hasFoundOlder = false;

  async function look(): Promise<void> {
    if (!hasFoundOlder) {
      // Read the position first: later deletions come after it.
      place = (await purge.deletedSince(null)).place;
      await findOlder();
      // Here, not after the purges: this reads a record of every session, and one purge may fail for days.
      hasFoundOlder = true;
    }
    await findNew();
    await purgeWaiting();
  }

  let sweepAtMs = clock.monotonicMs() + sweepFilesEveryMs;
  let sweeping: Promise<void> | null = null;

  function sweepIfDue(): void {
    if (sweeping || clock.monotonicMs() < sweepAtMs || stopped.signal.aborted) return;
    sweeping = sweep().finally(() => {
      sweeping = null;
    });
  }

  /** Contract: does not reject. */
  async function sweep(): Promise<void> {
    sweepAtMs = clock.monotonicMs() + sweepFilesEveryMs;
    try {
      const { deleted } = await sweepBlobs(purge, { signal: stopped.signal });
      lastSweep = null;
      if (deleted > 0) log.info({ deleted }, 'files without a reference in any record are deleted');
    } catch (error) {
      if (stopped.signal.aborted) return;
      lastSweep = error as Error;
      sweepAtMs = clock.monotonicMs() + Math.min(SWEEP_AGAIN_MS, sweepFilesEveryMs);
      log.error({ error: lastSweep.message }, 'a sweep of the retention job failed; a later one retries');
    }
  }

  const running = (async () => {
    while (!stopped.signal.aborted) {
      sweepIfDue();
      try {
        await look();
        last = null;
      } catch (error) {
        last = error as Error;
        log.error({ error: last.message }, 'a pass of the retention job failed; a later one retries');
      }
      // Aborted on `stop`, so that the timer does not keep the process alive.
      if (!stopped.signal.aborted) await clock.sleep(lookEveryMs, stopped.signal);
    }
    await sweeping;
  })();

  return {
    within: { recordsMs: RECORDS_WITHIN_MS, filesMs: BOUNDS.unusedBlobKeptMs + sweepFilesEveryMs },
    async ping() {
      const failed = last ?? lastSweep;
      if (failed) throw failed;
    },
    async stop() {
      stopped.abort();
      await running;
    },
  };
}
