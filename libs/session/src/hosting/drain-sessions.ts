/**
 * Drains sessions, in these steps for each:
 * 1. The session starts no more model calls and compactions (`SessionRunner.quiesce`).
 * 2. It ends the work that its next owner should not repeat, such as tool calls (`SessionRunner.hasWorkToDrain`).
 * 3. When that has ended, its runner stores a snapshot if one is due, and leaves. It transfers the session to another
 *    host if the session has open work or is not loaded (`SessionRunner.hasWork`), and passivates it otherwise. After the
 *    time is over, it leaves at once.
 *
 * A drain includes only the sessions that were in memory when it started. Its callers keep the host from loading
 * further ones: `Host.stop` calls `HostPartitions.retire` first, and `Host.transfer` follows a new assignment of the
 * partitions.
 */
import type { Clock } from '@coxswain/ports';
import type { SessionRef } from '@coxswain/protocol';
import type { SessionRunner } from '../runner/session-runner.ts';

/** The time between two checks of the draining sessions. */
const CHECK_EVERY_MS = 20;
/**
 * If other hosts are alive, the sessions start to drain one by one, `APART_MS` apart. Many start closer together, so
 * that the last starts within `SPREAD_MAX_MS` and within a fifth of the given time. Each works normally until then. A
 * host that has just started claims some tens of sessions a second. If all sessions were left at once, the last would
 * pause for as long as all claims take.
 */
const APART_MS = 50;
const SPREAD_MAX_MS = 2_000;

/** How the drain sees its host. */
export interface DrainingHost {
  /** Whether another host is alive. */
  hasOthers(): boolean;
  /** Whether a session is this host's again: it resumes, and is not left. */
  stays(ref: SessionRef): boolean;
  /** Aborts when the host is gone. */
  readonly ended: AbortSignal;
}

/**
 * Leaves each session as soon as it has no work to drain, or at `untilMs`. Resolves when all are left or stay and their
 * snapshots were stored or have failed, or when the host is gone. Contract: does not reject.
 * @param untilMs on the monotonic clock.
 */
export async function drainSessions(
  runners: readonly SessionRunner[],
  untilMs: number,
  clock: Clock,
  host: DrainingHost,
): Promise<void> {
  const startedMs = clock.monotonicMs();
  // The last session to start must still have most of the time for its calls.
  const spreadMs = host.hasOthers() ? Math.min(runners.length * APART_MS, SPREAD_MAX_MS, (untilMs - startedMs) / 5) : 0;
  const leaving = new Set<SessionRunner>();
  const snapshots: Promise<void>[] = [];
  let started = 0;
  while (started < runners.length || leaving.size > 0) {
    const nowMs = clock.monotonicMs();
    const isLate = nowMs >= untilMs;
    const due = spreadMs > 0 ? Math.min(1, (nowMs - startedMs + CHECK_EVERY_MS) / spreadMs) : 1;
    for (const runner of runners.slice(started, Math.ceil(runners.length * due))) {
      runner.quiesce();
      leaving.add(runner);
      started++;
    }
    for (const runner of leaving) {
      if (host.stays(runner.ref)) runner.resume();
      else if (!isLate && runner.hasWorkToDrain) continue;
      else {
        // The next host loads the session from the snapshot, or counts the session by the snapshot's header
        // (`PassivatedCount.#read`). The bytes of the snapshot are made before the runner leaves. With work left at
        // `untilMs` there is no snapshot: while the mailbox handles a job, the machine may be ahead of the journal.
        if (!runner.hasWorkToDrain) snapshots.push(runner.keepSnapshot());
        runner.leave(runner.hasWork ? 'handed_over' : 'passivated');
      }
      leaving.delete(runner);
    }
    if (started < runners.length || leaving.size > 0) await clock.sleep(CHECK_EVERY_MS, host.ended);
    if (host.ended.aborted) return;
  }
  await Promise.all(snapshots);
}
