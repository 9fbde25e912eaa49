/**
 * The host: the sessions that live in this process. Rings commands through to their runners, takes sessions up after a
 * restart, lets idle ones go, and stops in order.
 */
import { setMaxListeners } from 'node:events';
import type {
  ActiveSession,
  ActiveSessions,
  Doorbell,
  HostLine,
  Ids,
  SessionIndex,
  SessionSummary,
  StrayCommand,
  TenantUsage,
} from '@coxswain/ports';
import {
  type AnswerPieces,
  type AnswerPlace,
  type BackOff,
  cutText,
  delayAfter,
  type HostLiveness,
  HostName,
  isReceiptSubject,
  listedSessionOf,
  partitionOf,
  positionalCommandId,
  publishedAs,
  type Quotas,
  RecordUnreadableError,
  readId,
  type SessionRef,
  type SessionStatus,
  sessionKey,
  strayField,
  type TenantId,
} from '@coxswain/protocol';
import type { CommitBounds } from '../journal/commit.ts';
import { loadSession, readRecord, snapshotBytes } from '../journal/load-session.ts';
import type { RunnerPorts } from '../runner/runner-ports.ts';
import type { LeaveReason, LeftSession } from '../runner/session-exit.ts';
import { SessionRunner } from '../runner/session-runner.ts';
import { statusOf, summaryOf } from '../runner/session-status.ts';
import { CommandQuotas } from './command-quotas.ts';
import { fillIndex } from './fill-index.ts';
import { HostPartitions, type PartitionedSessions } from './host-partitions.ts';
import { HostState } from './host-state.ts';
import { Leftovers } from './leftovers.ts';
import { LoadTurns, sideBySide } from './load-turns.ts';
import { PassivatedSessions } from './passivated-sessions.ts';
import { SessionNotes } from './session-notes.ts';

/** The ports of a host. */
export interface HostPorts extends Omit<RunnerPorts, 'quotas'> {
  /** Measures tenants, for quotas of sessions and stored bytes. */
  readonly usage?: TenantUsage | undefined;
  readonly ids: Ids;
  readonly hostLine: HostLine;
  readonly active: ActiveSessions;
  /** Without it, lists are read from the journals. */
  readonly index?: SessionIndex | undefined;
}

/** How a host behaves. Every member has a default. */
export interface HostOptions {
  /** A name for people, 1 to 64 characters of A-Z a-z 0-9 _ -; the incarnation is unique in any case. Default `host`. */
  readonly name?: string;
  /** A snapshot every so many records. Default 16. */
  readonly snapshotEvery?: number;
  /** A session that has been idle for so long leaves memory. Default 30,000. */
  readonly passivateAfterMs?: number;
  /** How often idle sessions are looked for. Default 5,000. */
  readonly sweepEveryMs?: number;
  /** Serves these partitions, whoever else lives. When left out, the hosts share them out among themselves. */
  readonly partitions?: readonly number[];
  /** How hosts know each other's lives; every host of a bus has the same. */
  readonly liveness?: HostLiveness;
  /** How long an append without an answer is tried. */
  readonly commitBounds?: CommitBounds;
  /** The quotas of a tenant. When left out nothing is limited. */
  readonly quotas?: (tenant: TenantId) => Quotas;
}

/** A host of sessions. */
export interface SessionHost {
  /** This incarnation's id, as records hold it. */
  readonly id: string;
  /**
   * Joins the hosts, opens the inbox, and takes up every session of its partitions that has something to do, some at a
   * time. Resolves when commands flow.
   * @returns `found`: sessions that may have something to do, and are being taken up.
   */
  start(): Promise<{ readonly found: number }>;
  /**
   * A session after its newest stored record, or null for an unknown one. A caller that has read a record gets a status
   * that includes it, also where the host itself still waits for that record's acknowledgement.
   */
  status(ref: SessionRef): Promise<SessionStatus | null>;
  /**
   * What follows a reader's place in the newest answer of a session: nothing where none streams here. Null for a session that this
   * host does not have in memory, which another host may.
   * @param from the reader's place; null for the whole answer.
   */
  answer(ref: SessionRef, from: AnswerPlace | null): AnswerPieces | null;
  /** Whether it has heard itself on the bus a moment ago: what it says reaches others, and what they say reaches it. */
  readonly isHeard: boolean;
  /** The name by which other hosts know it now. */
  readonly peerName: string;
  /** Sessions in memory. */
  readonly live: number;
  /** Stops in order: no new command, no new model call; calls under way may end within `graceMs`. Default 10,000. */
  stop(graceMs?: number): Promise<void>;
  /** Leaves everything at once, as a crash would, but for the process: for a lost lease, and for simulations. */
  abandon(): void;
}

/** So long calls may go on here when the session's partition goes to another host, milliseconds. */
const HAND_OVER_MS = 10_000;
/** What lies behind a snapshot is held against its schema and fed to the machine at a recovery, a tenth of a millisecond each: it is to be little. */
const SNAPSHOT_EVERY = 16;
/** Journals that are read only for the spans that they have left open. */
const TRACES_AT_ONCE = 2;
/** Long journals that are read through at a time: few, or those that have to be owned yet would wait for them. */
const TRANSCRIPTS_AT_ONCE = 8;
const DRAINED_EVERY_MS = 20;
/**
 * Sessions that other hosts get are let go so long apart, and all within so long, milliseconds; each works on here until its
 * turn. A host that has just started takes up some tens a second: were all let go at once, the last would stand still for as
 * long as all take.
 */
const HAND_OVER_APART_MS = 50;
const HAND_OVER_SPREAD_MS = 2_000;
/** So long others wait for a session that is being taken up, milliseconds. */
const TAKE_UP_MAX_MS = 2_000;
/** Between two looks for sessions without an entry in the index, milliseconds. */
const FILL_APART_MS = 600_000;
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
  /** Null where nothing is measured. */
  readonly #passivated: PassivatedSessions | null;
  /** Failed attempts to take sessions up, by their keys. */
  readonly #retries = new Map<string, number>();
  readonly #loads: LoadTurns;
  readonly #transcripts: LoadTurns;
  readonly #traces: LoadTurns;
  readonly #state = new HostState();
  #unwatchHooks: () => void = () => {};
  #generation = 0;
  #names = 0;

  constructor(ports: HostPorts, options: HostOptions) {
    // Every session that waits to be tried again listens to it.
    setMaxListeners(0, this.#state.ended);
    const quotas = options.quotas && new CommandQuotas(ports, options.quotas);
    this.#ports = { ...ports, quotas };
    this.#options = options;
    this.#loads = new LoadTurns(ports.clock);
    this.#transcripts = new LoadTurns(ports.clock, TRANSCRIPTS_AT_ONCE);
    this.#traces = new LoadTurns(ports.clock, TRACES_AT_ONCE);
    const { meters } = ports.telemetry ?? {};
    const isMeasured = meters?.census('coxswain_sessions', () => this.#census()) ?? false;
    this.#passivated = isMeasured ? new PassivatedSessions({ ...ports, isHere: (ref) => this.isHere(ref) }) : null;
    meters?.census('coxswain_approvals_waiting', () => new Map([['', this.#approvals().waiting]]));
    meters?.census('coxswain_approvals_oldest_seconds', () => new Map([['', this.#approvals().oldestSeconds]]));
    this.id = `${readId(HostName, 'hostName', options.name ?? 'host')}-${ports.ids.next()}`;
    this.#partitions = new HostPartitions(
      ports,
      this,
      this.#state,
      (command) => this.#stray(command),
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

  /** How many sessions of this host's partitions are in which state, in memory or not. */
  #census(): ReadonlyMap<string, number> {
    const counted = new Map<string, number>();
    for (const summary of this.#summaries()) {
      const state = summary?.state ?? 'loading';
      counted.set(state, (counted.get(state) ?? 0) + 1);
    }
    return counted;
  }

  #approvals(): { readonly waiting: number; readonly oldestSeconds: number } {
    const nowMs = this.#ports.clock.nowMs();
    let waiting = 0;
    let oldestMs = nowMs;
    for (const summary of this.#summaries()) {
      waiting += summary?.approvals ?? 0;
      oldestMs = Math.min(oldestMs, summary?.oldestApprovalMs ?? nowMs);
    }
    return { waiting, oldestSeconds: (nowMs - oldestMs) / 1_000 };
  }

  /** What another host has got, it counts, also while the session still works here. */
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
    void this.#sweep();
    void this.#passivated?.run(this.#state.ended);
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

  async stop(graceMs = HAND_OVER_MS): Promise<void> {
    await this.#leavePartitions();
    const { clock } = this.#ports;
    const untilMs = clock.monotonicMs() + graceMs;
    const leaving = [...this.#runners.values()];
    await this.#drain(leaving, untilMs);
    await this.#notes.settled();
    this.#partitions.leave();
    this.abandon();
    // Tool connections are children of this process: give them the rest of the grace to end in order.
    const closed = Promise.all(leaving.map((runner) => runner.closed));
    const late = new AbortController();
    await Promise.race([closed, clock.sleep(Math.max(0, untilMs - clock.monotonicMs()), late.signal)]);
    late.abort();
  }

  abandon(): void {
    // Whoever takes over must get the commands: an inbox that stayed open would swallow them.
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

  ring(doorbell: Doorbell): void {
    if (!this.#state.ended.aborted) this.#runner(doorbell.ref).ring(doorbell);
  }

  /** One session that cannot be read now must not keep the others from being taken up. */
  async takeUp({ ref, revision }: ActiveSession): Promise<void> {
    // A command may have brought it here already; but that starts nothing of what was open.
    if (this.isHere(ref)) return this.#wake(ref, { isNews: true });
    let newest: number | undefined;
    try {
      const last = await this.#ports.journal.last(ref);
      newest = last?.fence;
      const record = last && (await readRecord(last.bytes, this.#ports.blobs));
      // Whose partition went meanwhile is somebody else's: here nobody would ever let it go again.
      if (this.#state.isLeaving || !this.#partitions.isOwn(ref)) return;
      // One that waits for nothing but a command costs disk only, until that command comes.
      if (!record || record.effects_open.length === 0) {
        if (record) void this.#count(ref);
        if (record && !this.#isOwn(record.attempt)) this.dropLeftovers((one) => sessionKey(one) === sessionKey(ref));
        return this.#notes.forget(ref, record ? { revision } : { revision, entry: null });
      }
    } catch (error) {
      // One that was deleted has nothing that goes on: also not what was open, where it was ended from outside.
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

  /** A session whose journal cannot be reached must not keep the others waiting: it goes on by itself. */
  async #wake(
    ref: SessionRef,
    known: { readonly isNews?: boolean; readonly newest?: number | undefined },
  ): Promise<void> {
    const late = new AbortController();
    await Promise.race([this.#runner(ref).wake(known), this.#ports.clock.sleep(TAKE_UP_MAX_MS, late.signal)]);
    late.abort();
  }

  async hasWork(ref: SessionRef): Promise<boolean> {
    try {
      const last = await this.#ports.journal.last(ref);
      const newest = last && (await readRecord(last.bytes, this.#ports.blobs));
      return newest !== null && newest.effects_open.length > 0 && !(await this.#isUntouchedImport(ref, newest.n));
    } catch (error) {
      // A deleted session has no work. One that cannot be read cannot be claimed, and must not keep the others from it.
      if (error instanceof RecordUnreadableError) return false;
      throw error;
    }
  }

  /** An imported journal of an open run rests until someone commands it: no host has worked on it here. */
  async #isUntouchedImport(ref: SessionRef, n: number): Promise<boolean> {
    const first = await this.#ports.journal.firstAfter(ref, 0);
    const input = first && (await readRecord(first.bytes, this.#ports.blobs)).input;
    const from = input?.type === 'command' ? input.copied_from : undefined;
    return from?.how === 'import' && n <= from.n;
  }

  transfer(partitions: ReadonlySet<number>): void {
    const leaving = [...this.#runners.values()].filter(({ ref }) => partitions.has(partitionOf(ref.sessionId)));
    // Does not reject.
    void this.#drain(leaving, this.#ports.clock.monotonicMs() + HAND_OVER_MS);
  }

  assigned(partitions: ReadonlySet<number>): void {
    this.#passivated?.serve(partitions);
  }

  /** Counts a session that its host has left without a snapshot of its newest state. Contract: does not reject. */
  async #count(ref: SessionRef): Promise<void> {
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

  resumeAll(): void {
    for (const runner of this.#runners.values()) void runner.wake();
  }

  dropLeftovers(isOthers: (ref: SessionRef) => boolean): void {
    this.#leftovers.drop(isOthers);
  }

  leaveAll(): void {
    for (const runner of [...this.#runners.values()]) runner.leave();
  }

  /** Lets sessions end what runs, and leaves each as soon as it has, or at the given time. */
  async #drain(runners: readonly SessionRunner[], untilMs: number): Promise<void> {
    const { clock } = this.#ports;
    const beganMs = clock.monotonicMs();
    // Whose calls are cut short at the end of the time must have had most of it.
    const spreadMs = this.#partitions.hasOthers
      ? Math.min(runners.length * HAND_OVER_APART_MS, HAND_OVER_SPREAD_MS, (untilMs - beganMs) / 5)
      : 0;
    const leaving = new Set<SessionRunner>();
    const kept: Promise<void>[] = [];
    let told = 0;
    while (told < runners.length || leaving.size > 0) {
      const nowMs = clock.monotonicMs();
      const isLate = nowMs >= untilMs;
      const due = spreadMs > 0 ? Math.min(1, (nowMs - beganMs + DRAINED_EVERY_MS) / spreadMs) : 1;
      for (const runner of runners.slice(told, Math.ceil(runners.length * due))) {
        runner.quiesce();
        leaving.add(runner);
        told++;
      }
      for (const runner of leaving) {
        const isBack = !this.#state.isLeaving && this.#partitions.isOwn(runner.ref);
        if (isBack) runner.resume();
        else if (!isLate && runner.isDraining) continue;
        else if (runner.hasWork) runner.leave('handed_over');
        else {
          // The next owner counts it. Its bytes are made before it is left.
          kept.push(runner.keepSnapshot());
          runner.leave('passivated');
        }
        leaving.delete(runner);
      }
      if (told < runners.length || leaving.size > 0) await clock.sleep(DRAINED_EVERY_MS, this.#state.ended);
      if (this.#state.ended.aborted) return;
    }
    await Promise.all(kept);
  }

  // ---- commands ----

  /** What reached the command stream and belongs to no session is answered, if it can be, and let go. */
  #stray(command: StrayCommand): void {
    const published = publishedAs(command.subject);
    const subject = shortened(published);
    this.#ports.log.warn({ subject, seq: command.seq }, 'a command with an invalid subject was rejected');
    if (command.receiptTo && isReceiptSubject(command.receiptTo, published.split('.')[1] ?? '')) {
      this.#ports.publisher.receipt(command.receiptTo, {
        type: 'receipt',
        session_id: '',
        command_id: positionalCommandId(this.#ports.inbox.incarnation, command.seq),
        stage: 'rejected',
        code: 'invalid_id',
        message: `${subject} names no session: tenant, session and verb are 1 to 64 characters of A-Z a-z 0-9 _ -`,
        field: strayField(command.subject),
      });
    }
    command.ack();
  }

  #runner(ref: SessionRef): SessionRunner {
    const key = sessionKey(ref);
    const known = this.#runners.get(key);
    if (known) return known;
    const carried = this.#leftovers.take(ref);
    const runner = new SessionRunner(
      this.#ports,
      ref,
      {
        // A session that this host lost, or lost sight of, is owned anew when it comes back (RUNNER-10).
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
      // Nobody will go on with it; what it was told, and what its calls returned, goes with it.
      this.#retries.delete(key);
      this.#notes.forget(ref);
      this.#ports.log.info({ session_id: ref.sessionId }, `session released: ${left.message}`);
      return;
    }
    if (OWNERSHIP_LOST.has(left.reason))
      this.#ports.telemetry?.meters.add('coxswain_ownership_changes_total', { change: left.reason });
    this.#leftovers.keep(ref, left.carried);
    if (left.reason === 'foreign_writer' || this.#partitions.isOthers(ref))
      this.dropLeftovers((one) => sessionKey(one) === key);
    if (left.reason === 'passivated') {
      if (summary && this.#partitions.isOwn(ref)) this.#passivated?.left(ref, summary);
      this.#retries.delete(key);
      const status = runner?.status;
      this.#notes.forget(ref, { entry: status && left.hasWritten ? listedSessionOf(status) : null });
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
    // The next command tries again, and is answered. What was left with everything else, as the lease had run out, comes back
    // by its note, unless another host has it.
    if (left.reason === 'unreadable' || left.reason === 'abandoned') return;
    // It did write in the meantime, so this is new trouble; a run that cannot be ended is not, nor is a rival.
    const isOld = left.reason === 'unrecoverable' || left.reason === 'foreign_writer';
    if (left.hasWritten && !isOld) this.#retries.delete(key);
    void this.#retry(ref, key, left.reason === 'foreign_writer');
  }

  /**
   * The journal could not be written or read: the session is taken up again, with back-off, for as long as the host
   * runs. A command may have brought it back before; then it is woken all the same, as only a wake starts what is open.
   * One that another host had written to may have been let go of again: its note says whose it is.
   */
  async #retry(ref: SessionRef, key: string, isOthers = false): Promise<void> {
    const failures = (this.#retries.get(key) ?? 0) + 1;
    this.#retries.set(key, failures);
    const delayMs = delayAfter(failures, RETRIES);
    await this.#ports.clock.sleep(delayMs, this.#state.ended);
    if (this.#state.isLeaving || !this.#partitions.isOwn(ref)) return;
    if (!isOthers) return void this.#runner(ref).wake();
    // What cannot be read is as unknown as before.
    const isKnown = await this.#partitions.lookAt(ref, delayMs === RETRIES.maxMs).catch(() => false);
    if (!isKnown) void this.#retry(ref, key, true);
  }

  // ---- idle sessions ----

  async #sweep(): Promise<void> {
    const { clock } = this.#ports;
    let filling: Promise<unknown> | null = null;
    let filledMs = Number.NEGATIVE_INFINITY;
    const everyMs = this.#options.sweepEveryMs ?? 5_000;
    const afterMs = this.#options.passivateAfterMs ?? 30_000;
    while (!this.#state.ended.aborted) {
      await clock.sleep(everyMs, this.#state.ended);
      if (this.#ports.index && !filling && !this.#state.isLeaving && clock.monotonicMs() - filledMs >= FILL_APART_MS) {
        filledMs = clock.monotonicMs();
        const sessions = {
          isOwn: (ref: SessionRef) => this.#partitions.isOwn(ref),
          isHere: (ref: SessionRef) => this.isHere(ref),
        };
        filling = fillIndex(this.#ports, sessions, this.#state.ended).then(() => {
          filling = null;
        });
      }
      // Each is looked at when its turn comes: it may have got work while others were let go.
      await sideBySide([...this.#runners.values()], async (runner) => {
        if (this.#state.isLeaving) return;
        if (runner.idleMs() > afterMs) await runner.passivate();
        else runner.rest();
      });
    }
  }
}

/** Another host has the session from then on, or may have it. */
const OWNERSHIP_LOST: ReadonlySet<string> = new Set<LeaveReason>(['foreign_writer', 'handed_over', 'abandoned']);

/** A name for the line between hosts, in which a host's own may have anything. */
function peerName(id: string, no: number): string {
  return `${id}-${no}`.replaceAll(/[^A-Za-z0-9_-]/g, '-').slice(-64);
}

function isDeleted(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === 'session_deleted';
}

/** A subject for people: an id that is far too long is not repeated whole. */
function shortened(subject: string): string {
  return subject.length <= 200 ? subject : `${cutText(subject, 120)}… (${subject.length} characters)`;
}
