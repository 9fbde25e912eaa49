/** Leaving a session: why a runner leaves, what it leaves for the next runner, and the exception that ends its job. */
import type { Outcome } from '@coxswain/protocol';
import type { SealedRecord, StoreResult } from '../journal/append-record.ts';
import type { FeedbackBuffer } from './feedback-buffer.ts';

/**
 * The runner has left the session: its current job ends here. Each step of a job may throw it, and the runner's
 * `#handleJob` catches it. Code that handles other errors lets this one pass.
 */
export class SessionLeft extends Error {}

/**
 * Why a runner has left its session:
 * - `foreign_writer`: another host appended a record.
 * - `late_append`: an append that an earlier runner of this host gave up was stored after all.
 * - `journal_unavailable`: the session is loaded, and a record could not be stored, or a later read failed: of its newest
 *   record at a wake, or of the journal of a copy's origin.
 * - `unrecoverable`: an exception, and the run could not be ended as failed.
 * - `abandoned`: the host left all its sessions at once.
 * - `passivated`: the session was idle, or had no work when its host stopped or lost its partition.
 * - `handed_over`: the session had work, or was not loaded, when its host stopped or lost its partition
 *   (`SessionRunner.hasWork`).
 * - `load_failed`: the read that loads the session or its transcript failed. A later attempt may succeed.
 * - `journal_invalid`: the journal is damaged, incomplete, of another release, or the machine does not accept its events.
 * - `deleted`: the journal has a tombstone.
 *
 * The host claims the session again with back-off after `late_append`, `journal_unavailable`, `unrecoverable` and
 * `load_failed`; after `foreign_writer`, the note of its owner decides (`Host.#wakeAfterBackOff`).
 */
export type LeaveReason =
  | 'foreign_writer'
  | 'late_append'
  | 'journal_unavailable'
  | 'unrecoverable'
  | 'abandoned'
  | 'passivated'
  | 'handed_over'
  | 'load_failed'
  | 'journal_invalid'
  | 'deleted';

/** What a runner knows that no record holds: for the session's next runner on this host. */
export interface Carried {
  /** Settled outcomes by the ids of their effects (RUNNER-9, session-runner.ts). */
  readonly outcomes: ReadonlyMap<string, Outcome>;
  /** Feedback for the model. Empty after a reason of `LOSES_FEEDBACK` (session-runner.ts). */
  readonly feedback: FeedbackBuffer;
  /** The session's first record, if its append had no answer: the store may hold it. */
  readonly unansweredFirst: SealedRecord | null;
}

/** The report of a runner to its host after it has left the session. */
export interface LeftSession {
  readonly reason: LeaveReason;
  readonly message: string;
  readonly carried: Carried;
  /**
   * Whether the runner appended a record after it had read the whole journal. Then `Host.#runnerLeft` restarts the
   * back-off.
   */
  readonly hasWritten: boolean;
}

/**
 * The record at the position of the runner's append: of another host, of an earlier runner of this host, or a
 * tombstone.
 */
export type ConflictingRecord = Extract<StoreResult, { readonly status: 'foreign' | 'deleted' }>;

/** Whether the runner still has its session. A runner leaves once, and never comes back. */
export class SessionExit {
  readonly #isOwnRecord: (attempt: string) => boolean;
  readonly #onLeave: (reason: LeaveReason, message: string) => void;
  #hasLeft = false;
  #tombstone: string | null = null;

  /**
   * @param isOwnRecord whether this host wrote the record with this `attempt`, in any generation.
   * @param onLeave closes the runner. Called once.
   */
  constructor(isOwnRecord: (attempt: string) => boolean, onLeave: (reason: LeaveReason, message: string) => void) {
    this.#isOwnRecord = isOwnRecord;
    this.#onLeave = onLeave;
  }

  /** Whether the runner has left. */
  get hasLeft(): boolean {
    return this.#hasLeft;
  }

  /**
   * The sentence about the tombstone, if this runner wrote it, or found it at the position of its next record; or null.
   */
  get tombstone(): string | null {
    return this.#tombstone;
  }

  /** @throws {SessionLeft} if the runner has left. Call it after each wait: a host may leave a session at any time. */
  throwIfLeft(): void {
    if (this.#hasLeft) throw new SessionLeft();
  }

  /** Leaves the session at once: the runner aborts its effects and appends nothing more. */
  leave(reason: LeaveReason, message: string): void {
    if (this.#hasLeft) return;
    this.#hasLeft = true;
    this.#onLeave(reason, message);
  }

  /** Leaves a session that has a tombstone. @param tombstone the sentence about it. */
  leaveDeleted(tombstone: string): void {
    this.#tombstone = tombstone;
    this.leave('deleted', tombstone);
  }

  /** Leaves because the journal has a record, `n`, that this runner does not know: see {@link ConflictingRecord}. */
  leaveByConflict(n: number, found: ConflictingRecord): void {
    if (found.status === 'deleted') this.leaveDeleted(found.message);
    else {
      const reason = this.#isOwnRecord(found.attempt) ? 'late_append' : 'foreign_writer';
      this.leave(reason, `record ${n} was written by ${found.attempt}`);
    }
  }
}
