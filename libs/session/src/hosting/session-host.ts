/**
 * The session host: the sessions in this process. It notifies their runners of commands, claims sessions without an owner,
 * passivates idle ones, and stops in order. {@link HostPartitions} decides which sessions are this host's.
 */
import { setMaxListeners } from 'node:events';
import type { ActiveSession, CommandNotification, SessionSummary } from '@coxswain/ports';
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
import { loadSession, readRecord, snapshotBytes } from '../journal/load-session.ts';
import { hasOpenWork } from '../journal/open-work.ts';
import type { RunnerPorts } from '../runner/runner-ports.ts';
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
import { Leftovers } from './leftovers.ts';
import { LoadTurns } from './load-turns.ts';
import type { PartitionedSessions } from './partitioned-sessions.ts';
import { rejectUnroutable } from './reject-unroutable.ts';
import { SessionNotes } from './session-notes.ts';

/** How long calls may continue here after the session's partition has moved to another host, milliseconds. */
const TRANSFER_GRACE_MS = 10_000;
/** Recovery validates and folds the records after a snapshot, a tenth of a millisecond each: there should be few. */
const SNAPSHOT_EVERY = 16;
/** Limit of journals that are read at the same time for the spans that another host has opened. */
const TRACES_AT_ONCE = 2;
/** Limit of long journals that are read whole at the same time: low, because sessions that are not owned yet come first. */
const TRANSCRIPTS_AT_ONCE = 8;
/** How long other claims wait for one that does not end, milliseconds. */
const CLAIM_MAX_MS = 2_000;
const RETRIES: BackOff = { firstMs: 500, maxMs: 30_000 };

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
  /** Outcomes and feedback of runners that have left their sessions, for the next runners (RUNNER-9). */
  readonly #leftovers: Leftovers;
  /** Null without metrics. */
  readonly #passivated: PassivatedCount | null;
  /** Failed attempts to claim a session, by its key. */
  readonly #retries = new Map<string, number>();
  readonly #loads: LoadTurns;
  readonly #transcripts: LoadTurns;
  readonly #traces: LoadTurns;
  readonly #state = new HostState();
  #unwatchHooks: () => void = () => {};
  #generation = 0;
  #names = 0;

  constructor(ports: HostPorts, options: HostOptions) {
    // Each session that waits for a retry listens to it.
    setMaxListeners(0, this.#state.ended);
    const quotas = options.quotas && new CommandQuotas(ports, options.quotas);
    this.#ports = { ...ports, quotas };
    this.#options = options;
    this.#loads = new LoadTurns(ports.clock);
    this.#transcripts = new LoadTurns(ports.clock, TRANSCRIPTS_AT_ONCE);
    this.#traces = new LoadTurns(ports.clock, TRACES_AT_ONCE);
    const { meters } = ports.telemetry ?? {};
    const isMeasured = meters !== undefined && measureSessions(meters, ports.clock, () => this.#summaries());
    this.#passivated = isMeasured ? new PassivatedCount({ ...ports, isHere: (ref) => this.isHere(ref) }) : null;
    this.id = `${readId(HostName, 'hostName', options.name ?? 'host')}-${ports.ids.next()}`;
    this.#partitions = new HostPartitions(
      ports,
      this,
      this.#state,
      (command) => rejectUnroutable(ports, command),
      () => peerName(this.id, ++this.#names),
      options,
    );
    this.#leftovers = new Leftovers(ports.log);
    this.#notes = new SessionNotes(ports, () => this.#partitions.self);
  }

  get isHeard(): boolean {
    return this.#partitions.isHeard;
  }

  get peerName(): string {
    return this.#partitions.self;
  }

  get live(): number {
    return this.#runners.size;
  }

  /** Another host counts the sessions of its partitions, also while they still work here. */
  *#summaries(): Generator<SessionSummary | null> {
    for (const runner of this.#runners.values()) if (this.#partitions.isOwn(runner.ref)) yield runner.summary;
    if (this.#passivated) yield* this.#passivated.summaries();
  }

  async start(): Promise<{ readonly found: number }> {
    this.#unwatchHooks =
      this.#ports.hooks.onChange?.(() => {
        for (const runner of this.#runners.values()) runner.hooksChanged();
      }) ?? this.#unwatchHooks;
    const found = await this.#partitions.start();
    void passivateIdle(this.#runners, this.#ports.clock, this.#state, this.#options);
    void this.#passivated?.run(this.#state.ended);
    const sessions = {
      isOwn: (ref: SessionRef) => this.#partitions.isOwn(ref),
      isHere: (ref: SessionRef) => this.isHere(ref),
    };
    void keepIndexFilled(this.#ports, sessions, this.#state.ended);
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

  async stop(graceMs = TRANSFER_GRACE_MS): Promise<void> {
    await this.#leavePartitions();
    const { clock } = this.#ports;
    const untilMs = clock.monotonicMs() + graceMs;
    const leaving = [...this.#runners.values()];
    await this.#drain(leaving, untilMs);
    await this.#notes.settled();
    this.#partitions.leave();
    this.abandon();
    // Tool connections are children of this process. They may end in order within the rest of the grace.
    const closed = Promise.all(leaving.map((runner) => runner.closed));
    const late = new AbortController();
    await Promise.race([closed, clock.sleep(Math.max(0, untilMs - clock.monotonicMs()), late.signal)]);
    late.abort();
  }

  abandon(): void {
    // The next owners need the commands: an open inbox would swallow them.
    void this.#leavePartitions();
    this.#partitions.vanish();
    this.#unwatchHooks();
    this.leaveAll();
  }

  /** Contract: does not reject. */
  async #leavePartitions(): Promise<void> {
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

  notify(notification: CommandNotification): void {
    if (!this.#state.ended.aborted) this.#runner(notification.ref).notify(notification);
  }

  /**
   * Wakes a runner for a session with open effects; the runner claims the session (`SessionLifecycle.own`). An unreadable
   * session does not keep the host from claiming the others.
   */
  async claim({ ref, revision }: ActiveSession): Promise<void> {
    // A command may have loaded it already. That starts none of its open effects.
    if (this.isHere(ref)) return this.#wake(ref, { isNews: true });
    let newest: number | undefined;
    try {
      const last = await this.#ports.journal.last(ref);
      newest = last?.fence;
      const record = last && (await readRecord(last.bytes, this.#ports.blobs));
      // The partition may have moved meanwhile. A session of another host's partition would never leave this host.
      if (this.#state.isLeaving || !this.#partitions.isOwn(ref)) return;
      // A session without open effects stays on disk until its next command.
      if (!record || record.effects_open.length === 0) {
        if (record) void this.#countAndSnapshot(ref);
        if (record && !this.#isOwn(record.attempt)) this.dropLeftovers((one) => sessionKey(one) === sessionKey(ref));
        return this.#notes.forget(ref, record ? { revision } : { revision, entry: null });
      }
    } catch (error) {
      // A deleted session has no work, even if a deletion from outside has left effects open.
      if (isDeleted(error)) return this.#notes.forget(ref, { revision });
      this.#ports.log.error(
        { session_id: ref.sessionId, error: (error as Error).message },
        'a session cannot be claimed now',
      );
      void this.#retry(ref, sessionKey(ref));
      return;
    }
    await this.#wake(ref, { newest });
  }

  /** Wakes a runner. A session whose journal cannot be reached continues alone, so that others need not wait. */
  async #wake(
    ref: SessionRef,
    known: { readonly isNews?: boolean; readonly newest?: number | undefined },
  ): Promise<void> {
    const late = new AbortController();
    await Promise.race([this.#runner(ref).wake(known), this.#ports.clock.sleep(CLAIM_MAX_MS, late.signal)]);
    late.abort();
  }

  hasWork(ref: SessionRef): Promise<boolean> {
    return hasOpenWork(this.#ports, ref);
  }

  transfer(partitions: ReadonlySet<number>): void {
    const leaving = [...this.#runners.values()].filter(({ ref }) => partitions.has(partitionOf(ref.sessionId)));
    // Does not reject.
    void this.#drain(leaving, this.#ports.clock.monotonicMs() + TRANSFER_GRACE_MS);
  }

  assigned(partitions: ReadonlySet<number>): void {
    this.#passivated?.serve(partitions);
  }

  /**
   * Counts a session that is not in memory, and stores a snapshot if records follow the newest one. Only with metrics.
   * Contract: does not reject.
   */
  async #countAndSnapshot(ref: SessionRef): Promise<void> {
    const passivated = this.#passivated;
    if (!passivated) return;
    try {
      await this.#transcripts.take(async () => {
        const { tail, ...session } = await loadSession(this.#ports, ref, false);
        const summary = summaryOf(session.actor.state);
        if (tail > 0) await this.#ports.snapshots.put(ref, snapshotBytes(session), summary);
        if (!this.isHere(ref) && this.#partitions.isOwn(ref)) passivated.left(ref, summary);
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

  leaveAll(): void {
    for (const runner of [...this.#runners.values()]) runner.leave();
  }

  /** Lets sessions end their calls, and leaves each as soon as it has, or at the given time. */
  #drain(runners: readonly SessionRunner[], untilMs: number): Promise<void> {
    return drainSessions(runners, untilMs, this.#ports.clock, {
      hasOthers: () => this.#partitions.hasOthers,
      stays: (ref) => !this.#state.isLeaving && this.#partitions.isOwn(ref),
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
        // A session that comes back after this host has left it is owned anew (RUNNER-10).
        host: this.#generation === 0 ? this.id : `${this.id}.${this.#generation}`,
        isOwn: (attempt) => this.#isOwn(attempt),
        snapshotEvery: this.#options.snapshotEvery ?? SNAPSHOT_EVERY,
        commitBounds: this.#options.commitBounds,
        noted: () => this.#notes.noted(ref),
        notedAgain: () => this.#notes.notedAgain(ref),
        loads: this.#loads,
        transcripts: this.#transcripts,
        traces: this.#traces,
        mayBegin: () => this.#partitions.mayBegin,
      },
      (left) => this.#left(ref, left),
      carried,
    );
    this.#runners.set(key, runner);
    this.#passivated?.came(ref);
    return runner;
  }

  #isOwn(attempt: string): boolean {
    return attempt === this.id || attempt.startsWith(`${this.id}.`);
  }

  // ---- trouble ----

  #left(ref: SessionRef, left: LeftSession): void {
    const key = sessionKey(ref);
    const runner = this.#runners.get(key);
    const summary = runner?.summary;
    this.#runners.delete(key);
    if (left.reason === 'deleted') {
      // No record can hold its outcomes and feedback any longer, so they are dropped.
      this.#retries.delete(key);
      this.#notes.forget(ref);
      this.#ports.log.info({ session_id: ref.sessionId }, `session released: ${left.message}`);
      return;
    }
    if (OWNERSHIP_LOST.has(left.reason))
      this.#ports.telemetry?.meters.add('coxswain_ownership_changes_total', { change: left.reason });
    this.#leftovers.keep(ref, left.carried);
    if (left.reason === 'foreign_writer') this.dropLeftovers((one) => sessionKey(one) === key);
    if (left.reason === 'passivated') {
      if (summary && this.#partitions.isOwn(ref)) this.#passivated?.left(ref, summary);
      this.#retries.delete(key);
      const status = runner?.status;
      this.#notes.forget(ref, { entry: status && left.hasWritten ? indexEntryOf(status) : null });
      return;
    }
    this.#generation++;
    if (left.reason === 'handed_over') {
      this.#notes.offer(ref, () => this.#partitions.release(ref));
      return;
    }
    this.#notes.untrack(ref);
    if (this.#state.isLeaving) return;
    this.#ports.log.warn({ session_id: ref.sessionId, reason: left.reason }, `session released: ${left.message}`);
    // The next command of an unreadable session loads it again, and gets an answer. A session that was left with all others
    // comes back by its note, unless another host claims it.
    if (left.reason === 'unreadable' || left.reason === 'abandoned') return;
    // After a successful write the back-off starts again, except for a run that cannot end and for a rival host.
    const isOld = left.reason === 'unrecoverable' || left.reason === 'foreign_writer';
    if (left.hasWritten && !isOld) this.#retries.delete(key);
    void this.#retry(ref, key, left.reason === 'foreign_writer');
  }

  /**
   * Claims a session again, with back-off: after a failed claim, or after its runner has left it because of a failure or a
   * rival host. A command may have loaded it before; it is woken all the same, because a load starts no effects.
   * @param isOthers another host has appended to it. That host may have left it again: its note decides.
   */
  async #retry(ref: SessionRef, key: string, isOthers = false): Promise<void> {
    const failures = (this.#retries.get(key) ?? 0) + 1;
    this.#retries.set(key, failures);
    const delayMs = delayAfter(failures, RETRIES);
    await this.#ports.clock.sleep(delayMs, this.#state.ended);
    if (this.#state.isLeaving || !this.#partitions.isOwn(ref)) return;
    if (!isOthers) return void this.#runner(ref).wake();
    // If the note cannot be read, the owner stays unknown.
    const isKnown = await this.#partitions.lookAt(ref, delayMs === RETRIES.maxMs).catch(() => false);
    if (!isKnown) void this.#retry(ref, key, true);
  }
}

/** After a runner leaves for one of these reasons, another host owns the session, or may own it. */
const OWNERSHIP_LOST: ReadonlySet<string> = new Set<LeaveReason>(['foreign_writer', 'handed_over', 'abandoned']);

/** A name for the host channel, which takes fewer characters than the id of a host. */
function peerName(id: string, no: number): string {
  return `${id}-${no}`.replaceAll(/[^A-Za-z0-9_-]/g, '-').slice(-64);
}

function isDeleted(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === 'session_deleted';
}
