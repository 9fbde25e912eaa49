/**
 * The session host: the sessions in this process. It notifies their runners of commands, claims sessions without an owner,
 * passivates idle ones, and stops in order. {@link HostPartitions} decides which sessions are this host's.
 *
 * Methods that end work, from one session to the whole host:
 *
 * | method | what ends | what continues |
 * |---|---|---|
 * | `SessionRunner.leave` | The work of one session here, at once. | The host, its other sessions. |
 * | `Host.#runnerLeft` | Nothing: it follows each `leave`. By the reason, it keeps leftovers, writes or removes the note, or retries. | |
 * | `HostPartitions.announceSessionLeft` | Nothing: it announces to other hosts that a session with work was left. | |
 * | `Host.transfer` | The work of the sessions of lost partitions, each when it is drained (`drainSessions`). | The host. |
 * | `Host.abandonSessions` | The work of all sessions, at once: when the host is cut off (host-state.ts), and in `abandon`. | The host. |
 * | `HostPartitions.retire` | The intake: no deliveries, no new claims. The inbox is closed. | The sessions in memory, the heartbeats. |
 * | `HostPartitions.end` | The host, with a last heartbeat: the others need not wait until it is silent for long enough. | |
 * | `HostPartitions.vanish` | The host, without a message. | |
 * | `Host.stop` | The intake, then each session when it is drained, then the host. | |
 * | `Host.abandon` | The intake, all sessions and the host, at once and without the heartbeat `left`. | |
 */
import { setMaxListeners } from 'node:events';
import type { ActiveSession, SessionSummary } from '@coxswain/ports';
import {
  type AnswerPieces,
  type AnswerPlace,
  type BackOff,
  delayAfter,
  HostName,
  indexEntryOf,
  partitionOf,
  readId,
  type SessionRef,
  type SessionStatus,
  sessionKey,
} from '@coxswain/protocol';
import { openWorkAt } from '../journal/has-open-work.ts';
import { loadSession, readRecord, snapshotBytes } from '../journal/load-session.ts';
import type { RunnerNotification, RunnerPorts } from '../runner/runner-ports.ts';
import type { LeaveReason, LeftSession } from '../runner/session-exit.ts';
import { SessionRunner } from '../runner/session-runner.ts';
import { statusOf, summaryOf } from '../runner/session-status.ts';
import { measureSessions } from '../trace/measure-sessions.ts';
import { CommandQuotas } from './command-quotas.ts';
import { PassivatedCount } from './count-passivated.ts';
import { drainSessions } from './drain-sessions.ts';
import { keepIndexFilled } from './fill-index.ts';
import type { HostOptions, HostPorts, SessionHost } from './host-interface.ts';
import { HostPartitions } from './host-partitions.ts';
import { HostState } from './host-state.ts';
import { passivateIdle } from './idle-sessions.ts';
import { IndexWrites } from './index-writes.ts';
import { Leftovers } from './leftovers.ts';
import { LoadLimit } from './load-limit.ts';
import type { PartitionedSessions } from './partitioned-sessions.ts';
import { createUnroutableHandler } from './reject-unroutable.ts';
import { SessionNotes } from './session-notes.ts';

/**
 * How long calls may continue here after the session's partition has moved to another host, or after the host was asked
 * to stop, milliseconds. The default of {@link SessionHost.stop}.
 */
const TRANSFER_GRACE_MS = 10_000;
/**
 * The number of records between two snapshots. Loading a session validates and folds the records after its snapshot, a tenth
 * of a millisecond each, so there should be few.
 */
const SNAPSHOT_EVERY = 32;
/** How many journals are read at the same time for spans that started before a session was loaded here. */
const TRACES_AT_ONCE = 2;
/**
 * Bounds two kinds of reads together: of transcripts for sessions that were loaded without one, and of sessions that
 * are loaded only to be counted. Low, so that the claims of sessions without an owner are not delayed.
 */
const TRANSCRIPTS_AT_ONCE = 8;
/** How long the claim of one session waits for its runner, milliseconds. Then the next session is claimed. */
const CLAIM_MAX_MS = 2_000;
/** The waits before a session is claimed again (`#wakeAfterBackOff`). */
const CLAIM_BACK_OFF: BackOff = { firstMs: 500, maxMs: 30_000 };

/** Makes a host. Nothing runs before {@link SessionHost.start}. */
export function createSessionHost(ports: HostPorts, options: HostOptions = {}): SessionHost {
  return new Host(ports, options);
}

class Host implements SessionHost, PartitionedSessions {
  readonly id: string;
  readonly #ports: HostPorts & RunnerPorts;
  readonly #options: HostOptions;
  readonly #partitions: HostPartitions;
  readonly #runners = new Map<string, SessionRunner>();
  readonly #notes: SessionNotes;
  readonly #index: IndexWrites;
  /** What runners that have left their sessions pass on to the next runners here (RUNNER-9, runner/session-runner.ts). */
  readonly #leftovers: Leftovers;
  /** Null without metrics. */
  readonly #passivated: PassivatedCount | null;
  /** Consecutive retries of a session, by its key: see `#wakeAfterBackOff`. */
  readonly #retries = new Map<string, number>();
  readonly #loads: LoadLimit;
  readonly #transcripts: LoadLimit;
  readonly #traces: LoadLimit;
  readonly #state = new HostState();
  #unwatchHooks: () => void = () => {};
  #generation = 0;
  #names = 0;

  constructor(ports: HostPorts, options: HostOptions) {
    // Each session that waits for a retry listens to this signal.
    setMaxListeners(0, this.#state.ended);
    const quotas = options.quotas && new CommandQuotas(ports, options.quotas);
    this.#ports = { ...ports, quotas };
    this.#options = options;
    this.#loads = new LoadLimit(ports.clock);
    this.#transcripts = new LoadLimit(ports.clock, TRANSCRIPTS_AT_ONCE);
    this.#traces = new LoadLimit(ports.clock, TRACES_AT_ONCE);
    const { meters } = ports.telemetry ?? {};
    const isMeasured = meters !== undefined && measureSessions(meters, ports.clock, () => this.#summaries());
    this.#passivated = isMeasured ? new PassivatedCount({ ...ports, isHere: (ref) => this.isHere(ref) }) : null;
    this.id = `${readId(HostName, 'hostName', options.name ?? 'host')}-${ports.ids.next()}`;
    this.#partitions = new HostPartitions(
      ports,
      this,
      this.#state,
      createUnroutableHandler(ports),
      () => peerName(this.id, ++this.#names),
      options,
    );
    this.#leftovers = new Leftovers(ports.log);
    this.#index = new IndexWrites(ports);
    this.#notes = new SessionNotes(ports, this.#index, () => this.#partitions.self);
  }

  get hasLease(): boolean {
    return this.#partitions.hasLease;
  }

  get peerName(): string {
    return this.#partitions.self;
  }

  get indexProblem(): string | null {
    return this.#index.problem;
  }

  get live(): number {
    return this.#runners.size;
  }

  /**
   * The summaries for the metrics: of the sessions in this host's partitions, in memory or passivated. Sessions of a
   * lost partition are left out while they still work here, because another host counts them.
   */
  *#summaries(): Generator<SessionSummary | null> {
    for (const runner of this.#runners.values()) if (this.#partitions.isAssigned(runner.ref)) yield runner.summary;
    if (this.#passivated) yield* this.#passivated.summaries();
  }

  async start(): Promise<{ readonly found: number }> {
    this.#unwatchHooks =
      this.#ports.hooks.onChange?.((tenant) => {
        for (const runner of this.#runners.values())
          if (tenant === undefined || runner.ref.tenant === tenant) runner.hooksChanged();
      }) ?? this.#unwatchHooks;
    const found = await this.#partitions.start();
    void passivateIdle(this.#runners, this.#ports.clock, this.#state, this.#options);
    void this.#passivated?.run(this.#state.ended);
    const sessions = {
      isAssigned: (ref: SessionRef) => this.#partitions.isAssigned(ref),
      isHere: (ref: SessionRef) => this.isHere(ref),
    };
    void keepIndexFilled(this.#ports, this.#index, sessions, this.#state.ended);
    return { found };
  }

  async status(ref: SessionRef): Promise<SessionStatus | null> {
    const live = this.#runners.get(sessionKey(ref))?.status;
    if (live) return live;
    const { actor, n, at } = await loadSession(this.#ports, ref, false);
    return n === 0 ? null : statusOf(actor.state, n, at);
  }

  answer(ref: SessionRef, from: AnswerPlace | null): AnswerPieces | null {
    return this.#runners.get(sessionKey(ref))?.answer.after(from) ?? null;
  }

  /**
   * Stops in order.
   *
   * 1. From the first step on ({@link HostPartitions.retire}), the host gets no deliveries and starts no claims, and
   *    other hosts get its partitions. The sessions in memory still take commands that those hosts pass on. The inbox
   *    closes; a failure is only logged.
   * 2. The sessions in memory drain ({@link drainSessions}), for `graceMs` at most.
   * 3. The host waits until the notes of these sessions are written.
   * 4. From here on the host is `gone`: a last heartbeat says so, and whatever is still in memory is left at once.
   * 5. The tool connections close, some of them with child processes. The host waits for them until `graceMs` is over.
   *    Then it drops the leftovers.
   */
  async stop(graceMs = TRANSFER_GRACE_MS): Promise<void> {
    await this.#retire();
    const { clock } = this.#ports;
    const untilMs = clock.monotonicMs() + graceMs;
    const leaving = [...this.#runners.values()];
    await this.#drain(leaving, untilMs);
    await this.#notes.settled();
    this.#partitions.end();
    this.abandon();
    // Tool connections may end in order within the rest of `graceMs`.
    const closed = Promise.all(leaving.map((runner) => runner.closed));
    const late = new AbortController();
    await Promise.race([closed, clock.sleep(Math.max(0, untilMs - clock.monotonicMs()), late.signal)]);
    late.abort();
    this.dropLeftovers(() => true);
  }

  abandon(): void {
    // The host ends like a crash, but closes the inbox: an open inbox would get deliveries that other hosts need.
    void this.#retire();
    this.#partitions.vanish();
    this.#unwatchHooks();
    this.abandonSessions();
  }

  /** Leaves the partitions. A second call does nothing. Contract: does not reject. */
  async #retire(): Promise<void> {
    try {
      await this.#partitions.retire();
    } catch (error) {
      this.#ports.log.warn({ error: (error as Error).message }, 'the inbox could not be closed cleanly');
    }
  }

  // ---- partitions ----

  isHere(ref: SessionRef): boolean {
    return this.#runners.has(sessionKey(ref));
  }

  notify(notification: RunnerNotification): void {
    if (!this.#state.ended.aborted) this.#runner(notification.ref).notify(notification);
  }

  /**
   * Claims a session. The first case that applies decides:
   * 1. The session is in memory: wakes its runner (`SessionRunner.wake`), which becomes the owner if an open effect is not a
   *    timer.
   * 2. Its newest record cannot be read now: wakes its runner later (`#wakeAfterBackOff`).
   * 3. It is deleted: removes its note.
   * 4. Its partition was lost meanwhile, or the host is leaving: does nothing.
   * 5. Its newest record has no open effects, or it has no record: removes its note, and does not load it. If another host
   *    wrote that record, drops the outcomes that this host kept for it. With metrics, a session with records is counted,
   *    and gets a snapshot if one is due (`#countAndSnapshot`).
   * 6. It has open effects: makes a runner, and wakes it as in 1. The runner loads the session.
   */
  async claim({ ref, revision }: ActiveSession): Promise<void> {
    // A command may have loaded the session already. Loading starts none of its open effects.
    if (this.isHere(ref)) return this.#wake(ref, { mayBeOutdated: true });
    let newest: number | undefined;
    try {
      const last = await this.#ports.journal.last(ref);
      newest = last?.fence;
      const record = last && (await readRecord(last.bytes, this.#ports.blobs));
      // The partition may have moved meanwhile. Then `transfer` has run already, and the session would stay here.
      if (this.#state.isLeaving || !this.#partitions.isAssigned(ref)) return;
      // A command may have loaded the session meanwhile. Then its note is the runner's.
      if (this.isHere(ref)) return this.#wake(ref, { mayBeOutdated: true });
      // A session without open effects stays on disk until its next command.
      if (!record || record.effects_open.length === 0) {
        if (record) void this.#countAndSnapshot(ref);
        if (record && !this.#isOwnRecord(record.attempt))
          this.dropLeftovers((one) => sessionKey(one) === sessionKey(ref));
        // A mark, because the writer of the note may have failed to set it.
        return this.#notes.forget(ref, record ? 'mark' : 'prune', revision);
      }
    } catch (error) {
      // A deleted session has no work, even if a deletion from outside has left effects open.
      if (isDeleted(error)) return this.#notes.forget(ref, 'mark', revision);
      this.#ports.log.error(
        { session_id: ref.sessionId, error: (error as Error).message },
        'a session cannot be claimed now',
      );
      void this.#wakeAfterBackOff(ref);
      return;
    }
    await this.#wake(ref, { newest });
  }

  /** Wakes the runner of a session, and waits for it for {@link CLAIM_MAX_MS} at most: its journal may not answer. */
  async #wake(
    ref: SessionRef,
    known: { readonly mayBeOutdated?: boolean; readonly newest?: number | undefined },
  ): Promise<void> {
    const late = new AbortController();
    await Promise.race([this.#runner(ref).wake(known), this.#ports.clock.sleep(CLAIM_MAX_MS, late.signal)]);
    late.abort();
  }

  openWorkAt(ref: SessionRef): Promise<number | null> {
    return openWorkAt(this.#ports, ref);
  }

  transfer(partitions: ReadonlySet<number>): void {
    const leaving = [...this.#runners.values()].filter(({ ref }) => partitions.has(partitionOf(ref.sessionId)));
    this.#ports.quotas?.dropPending((ref) => partitions.has(partitionOf(ref.sessionId)) && !this.isHere(ref));
    // `#drain` does not reject.
    void this.#drain(leaving, this.#ports.clock.monotonicMs() + TRANSFER_GRACE_MS);
  }

  assigned(partitions: ReadonlySet<number>): void {
    this.#passivated?.serve(partitions);
  }

  /**
   * Counts a session that is not in memory, and stores a snapshot if records follow the newest one. Does nothing
   * without metrics. Contract: does not reject.
   */
  async #countAndSnapshot(ref: SessionRef): Promise<void> {
    const passivated = this.#passivated;
    if (!passivated) return;
    try {
      await this.#transcripts.take(async () => {
        const { tail, ...session } = await loadSession(this.#ports, ref, false);
        const summary = summaryOf(session.actor.state);
        if (tail > 0) await this.#ports.snapshots.put(ref, snapshotBytes(session), summary);
        if (!this.isHere(ref) && this.#partitions.isAssigned(ref)) passivated.add(ref, summary);
      });
    } catch (error) {
      this.#ports.log.debug({ session_id: ref.sessionId, error: (error as Error).message }, 'a session is not counted');
    }
  }

  wakeAll(): void {
    for (const runner of this.#runners.values()) void runner.wake();
  }

  dropLeftovers(isObsolete: (ref: SessionRef) => boolean): void {
    this.#leftovers.drop(isObsolete);
  }

  abandonSessions(): void {
    for (const runner of [...this.#runners.values()]) runner.leave();
  }

  /** Drains sessions until the given time, on the monotonic clock: {@link drainSessions}. */
  #drain(runners: readonly SessionRunner[], untilMs: number): Promise<void> {
    return drainSessions(runners, untilMs, this.#ports.clock, {
      hasOthers: () => this.#partitions.hasOthers,
      stays: (ref) => !this.#state.isLeaving && this.#partitions.isAssigned(ref),
      ended: this.#state.ended,
    });
  }

  // ---- runners ----

  #runner(ref: SessionRef): SessionRunner {
    const key = sessionKey(ref);
    const known = this.#runners.get(key);
    if (known) return known;
    const carried = this.#leftovers.take(ref);
    const runner = new SessionRunner(
      this.#ports,
      ref,
      {
        // The generation grows each time a runner leaves for another reason than `passivated` or `deleted`. Then each
        // later runner owns its session anew, also if this host wrote the newest record (RUNNER-10,
        // runner/session-runner.ts).
        host: this.#generation === 0 ? this.id : `${this.id}.${this.#generation}`,
        isOwnRecord: (attempt) => this.#isOwnRecord(attempt),
        snapshotEvery: this.#options.snapshotEvery ?? SNAPSHOT_EVERY,
        appendBounds: this.#options.appendBounds,
        storeNote: () => this.#notes.storeNote(ref),
        storeNoteAgain: () => this.#notes.storeNoteAgain(ref),
        loads: this.#loads,
        transcripts: this.#transcripts,
        traces: this.#traces,
        mayStartEffects: () => this.#partitions.mayStartEffects,
      },
      (left) => this.#runnerLeft(ref, left),
      carried,
    );
    this.#runners.set(key, runner);
    this.#passivated?.remove(ref);
    return runner;
  }

  #isOwnRecord(attempt: string): boolean {
    return attempt === this.id || attempt.startsWith(`${this.id}.`);
  }

  // ---- sessions that were left, and retries ----

  /** A runner has left its session, and reports why. What happens next depends on the reason. */
  #runnerLeft(ref: SessionRef, left: LeftSession): void {
    const key = sessionKey(ref);
    const runner = this.#runners.get(key);
    const summary = runner?.summary;
    this.#runners.delete(key);
    // The queue of a passivated session still counts here, until the partition of the session is lost (`transfer`).
    const isPassivatedHere = left.reason === 'passivated' && this.#partitions.isAssigned(ref);
    if (!isPassivatedHere) this.#ports.quotas?.notePending(ref, 0);
    if (left.reason === 'deleted') {
      // No record can hold its outcomes and feedback any longer, so they are dropped.
      this.#retries.delete(key);
      this.#notes.forgetDeleted(ref);
      this.#ports.log.info({ session_id: ref.sessionId }, `session released: ${left.message}`);
      return;
    }
    if (OWNERSHIP_LOST.has(left.reason))
      this.#ports.telemetry?.meters.add('coxswain_ownership_changes_total', { change: left.reason });
    this.#leftovers.keep(ref, left.carried);
    if (left.reason === 'foreign_writer') this.dropLeftovers((one) => sessionKey(one) === key);
    if (left.reason === 'passivated') {
      if (summary && isPassivatedHere) this.#passivated?.add(ref, summary);
      this.#retries.delete(key);
      const status = runner?.status;
      this.#notes.forget(ref, status && left.hasWritten ? indexEntryOf(status) : 'prune');
      return;
    }
    this.#generation++;
    if (left.reason === 'handed_over') {
      this.#notes.offer(ref, () => this.#partitions.announceSessionLeft(ref));
      return;
    }
    this.#notes.untrack(ref);
    if (this.#state.isLeaving) return;
    this.#ports.log.warn({ session_id: ref.sessionId, reason: left.reason }, `session released: ${left.message}`);
    // The next command of an unreadable session loads it again, and gets an answer. A session that was left with all others
    // comes back by its note, unless another host claims it.
    if (left.reason === 'journal_invalid' || left.reason === 'abandoned') return;
    // After a successful write the back-off starts anew. Not for a run that cannot be ended (`unrecoverable`) and for a record
    // of another writer: there each attempt may write before it fails again.
    const keepsBackOff = left.reason === 'unrecoverable' || left.reason === 'foreign_writer';
    if (left.hasWritten && !keepsBackOff) this.#retries.delete(key);
    void this.#wakeAfterBackOff(ref, left.reason === 'foreign_writer');
  }

  /**
   * Claims a session again, with back-off, while its partition is this host's: after a failed claim, or after its
   * runner has left it because of a failure, another host's record or a late append. A command may have loaded the
   * session meanwhile. It is woken all the same, because loading starts no effects.
   * @param isOthers whether another host has appended to the session. That host may have left the session since: the
   *   note of the session decides (`HostPartitions.claimByNote`).
   */
  async #wakeAfterBackOff(ref: SessionRef, isOthers = false): Promise<void> {
    const key = sessionKey(ref);
    const failures = (this.#retries.get(key) ?? 0) + 1;
    this.#retries.set(key, failures);
    const delayMs = delayAfter(failures, CLAIM_BACK_OFF);
    await this.#ports.clock.sleep(delayMs, this.#state.ended);
    if (this.#state.isLeaving) return;
    if (!this.#partitions.isAssigned(ref)) return void this.#retries.delete(key);
    // The partition has moved and come back. A claim now would stop the calls that the other host lets end.
    if (!this.#partitions.hasReadNotes(ref)) return void this.#wakeAfterBackOff(ref, isOthers);
    if (this.#partitions.isKeptByOther(ref)) return;
    if (!isOthers) return void this.#runner(ref).wake();
    // If the notes cannot be read, this host tries again.
    const isDecided = await this.#partitions.claimByNote(ref, delayMs === CLAIM_BACK_OFF.maxMs).catch(() => false);
    if (!isDecided) void this.#wakeAfterBackOff(ref, true);
  }
}

/** After a runner leaves for one of these reasons, another host owns the session, or may own it. */
const OWNERSHIP_LOST: ReadonlySet<string> = new Set<LeaveReason>(['foreign_writer', 'handed_over', 'abandoned']);

/** A host's name on the host channel. The channel takes 64 characters, fewer than an id can have. */
function peerName(id: string, no: number): string {
  return `${id}-${no}`.replaceAll(/[^A-Za-z0-9_-]/g, '-').slice(-64);
}

function isDeleted(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === 'session_deleted';
}
