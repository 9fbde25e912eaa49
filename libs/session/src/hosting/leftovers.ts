/**
 * Leftovers: outcomes and feedback that a runner had not recorded when it left its session (RUNNER-9,
 * runner/session-runner.ts), and the session's first record if its append had no answer.
 *
 * | place | what happens to them |
 * |---|---|
 * | `SessionRunner.#close` | A runner has left for a reason of `LOSES_FEEDBACK`: its feedback is dropped. |
 * | `Host.#runnerLeft` | A runner has left: what remains is kept. For a deleted session it is dropped. |
 * | `Host.#runner` | The session's next runner on this host takes them. |
 * | `SessionLifecycle.#settleCarried` | If another host wrote the newest record: feedback is dropped, and outcomes without an open effect. |
 * | `Host.#runnerLeft`, reason `foreign_writer` | Another host has appended a record: they are dropped. |
 * | `Host.claim` | Another host wrote the newest record, and it leaves no effect open: they are dropped. |
 * | `HostPartitions.#applyNotes` | The notes of the partition do not list the session: they are dropped. |
 * | `Host.stop` | The host ends: they are dropped. |
 * | `Leftovers.keep` | Beyond the bounds, the oldest are dropped. |
 *
 * Dropped outcomes and feedback are logged, except the outcomes of a deleted session. If the partition is assigned to
 * another host, or the note names another host, nothing is dropped: the session may come back before that host has
 * appended a record.
 */
import type { Log } from '@coxswain/ports';
import { type SessionRef, sessionKey } from '@coxswain/protocol';
import { logLostFeedback } from '../runner/feedback-buffer.ts';
import type { Carried } from '../runner/session-exit.ts';
import { logLateOutcome } from '../runner/session-work.ts';

/** Bounds of what a host keeps. Beyond them it drops the oldest. */
export interface LeftoverBounds {
  readonly maxSessions: number;
  /** Of outcomes as JSON and of records. Feedback has a bound of its own. */
  readonly maxBytes: number;
}

const BOUNDS: LeftoverBounds = { maxSessions: 1_000, maxBytes: 64 * 1024 * 1024 };

interface Kept {
  readonly ref: SessionRef;
  readonly carried: Carried;
  readonly bytes: number;
}

/** The leftovers of all sessions of this host. */
export class Leftovers {
  readonly #log: Log;
  readonly #bounds: LeftoverBounds;
  /** The oldest first. */
  readonly #kept = new Map<string, Kept>();
  #bytes = 0;

  constructor(log: Log, bounds: LeftoverBounds = BOUNDS) {
    this.#log = log;
    this.#bounds = bounds;
  }

  /** Keeps the leftovers of a runner, if there are any. They replace older ones of the session. */
  keep(ref: SessionRef, carried: Carried): void {
    const { outcomes, feedback, unansweredFirst } = carried;
    if (outcomes.size === 0 && feedback.isEmpty && !unansweredFirst) return;
    this.take(ref);
    const outcomeBytes = Buffer.byteLength(JSON.stringify([...outcomes.values()]), 'utf8');
    const bytes = outcomeBytes + (unansweredFirst?.bytes.length ?? 0);
    this.#kept.set(sessionKey(ref), { ref, carried, bytes });
    this.#bytes += bytes;
    for (const oldest of this.#kept.values()) {
      if (this.#kept.size <= this.#bounds.maxSessions && this.#bytes <= this.#bounds.maxBytes) break;
      this.#drop(oldest);
    }
  }

  /** Removes the leftovers of a session. @returns them, or undefined. */
  take(ref: SessionRef): Carried | undefined {
    const kept = this.#kept.get(sessionKey(ref));
    if (kept) this.#remove(kept);
    return kept?.carried;
  }

  /** Drops the leftovers of the sessions that the predicate selects. */
  drop(isObsolete: (ref: SessionRef) => boolean): void {
    for (const kept of this.#kept.values()) if (isObsolete(kept.ref)) this.#drop(kept);
  }

  #drop(kept: Kept): void {
    const { ref, carried } = kept;
    this.#remove(kept);
    for (const effectId of carried.outcomes.keys()) logLateOutcome(this.#log, ref.sessionId, effectId);
    if (!carried.feedback.isEmpty) logLostFeedback(this.#log, ref.sessionId);
  }

  #remove({ ref, bytes }: Kept): void {
    this.#kept.delete(sessionKey(ref));
    this.#bytes -= bytes;
  }
}
