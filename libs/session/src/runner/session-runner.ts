/**
 * The runner: one session's mailbox, its commits and its effects. Its parts: {@link SessionLifecycle} loads, owns and
 * loads it again after a failure, {@link SessionIntake} turns commands into inputs, {@link JournalWriter} turns an input into a
 * record, and {@link SessionWork} runs what the newest record asks for.
 *
 * RUNNER-1  Appending one record to the journal is the only commit point.
 * RUNNER-2  A record holds all events of one step: the one input and everything that follows from it until the machine waits.
 * RUNNER-3  State that anyone else can see changes only after the append is acknowledged.
 * RUNNER-4  An effect starts only after the record that asked for it is acknowledged.
 * RUNNER-5  Every outcome comes back through the session's one mailbox: one writer, one order. No job in the mailbox waits
 *           for an effect.
 * RUNNER-6  The same code reconciles effects after each append, on each wake, and after a failure once its run has ended.
 *           It does not while records are copied. Loading alone starts no effect.
 * RUNNER-7  The record that consumes a command holds its inbox position. The delivery is acknowledged after the append.
 * RUNNER-8  Queues and memories of ids have bounds, except the jobs `wake` and `step`: the deliveries that the inbox
 *           allows in flight, with one job for all of them; one outcome per open effect, and one job `broken` if its
 *           worker rejects; one job for changed hooks; and one job for the feedback in its own bounded buffer. A `wake`
 *           is posted once per claim, retry with back-off, regained lease or resumed drain. A `step` is posted per lost
 *           attempt of the open model step (`stepTriesMax`), and per change of what it waits for.
 * RUNNER-9  A settled outcome is kept until a record that holds it is acknowledged, or until its effect is no longer open.
 *           After a reload it is offered again.
 * RUNNER-10 A runner that finds another record at the position of its next one, for example by its append or after a
 *           failure, aborts its effects and appends nothing more. That record is of another host, of an earlier runner
 *           of this host, or a tombstone. Unless it is a tombstone, the first record of the session's next runner is
 *           `owned {epoch: last + 1}`.
 * RUNNER-11 A rejected command leaves no record where a quota is used up, or where too many of the newest commands were
 *           rejected (`recordsRejection`; libs/turn, command-memory.ts). In the second case the runner first checks that
 *           its state is the newest: a newer one may accept the command. A command with a `problem`, such as an
 *           unreadable one, needs no check. The receipt is sent once this host has acknowledged the command's delivery,
 *           or the cursor of a record has passed the command. So a rejected command is not accepted later, unless its
 *           sender sends it again.
 */
import type { Clock, SessionSummary } from '@coxswain/ports';
import {
  type AnswerSoFar,
  assertNever,
  type Outcome,
  type PersonaStepInput,
  type SessionRef,
  type SessionStatus,
} from '@coxswain/protocol';
import { SessionWorker } from '../effects/session-worker.ts';
import { SessionCopy } from '../journal/copy-session.ts';
import type { LiveSession as Live } from '../journal/load-session.ts';
import { sessionLog } from '../trace/session-log.ts';
import { FeedbackBuffer } from './feedback-buffer.ts';
import { FeedbackIntake } from './feedback-intake.ts';
import { InboxReader } from './inbox-reader.ts';
import { JournalWriter } from './journal-writer.ts';
import type { RunnerNotification, RunnerOptions, RunnerPorts } from './runner-ports.ts';
import { type Carried, type LeaveReason, type LeftSession, SessionExit, SessionLeft } from './session-exit.ts';
import { SessionIntake } from './session-intake.ts';
import { SessionLifecycle } from './session-lifecycle.ts';
import { EffectTable, SessionWork, workOf } from './session-work.ts';
import { ruleWrites, timerWrites } from './timer-and-rule-writes.ts';
import { UnrecordedReceipts } from './unrecorded-receipts.ts';

type Job =
  | { readonly kind: 'inbox' }
  | { readonly kind: 'outcome'; readonly outcome: Outcome }
  | { readonly kind: 'feedback' }
  | { readonly kind: 'hooks' }
  | { readonly kind: 'step'; readonly input: PersonaStepInput }
  | { readonly kind: 'broken'; readonly error: Error }
  | {
      readonly kind: 'wake';
      readonly handled: () => void;
      readonly mayBeOutdated: boolean;
      readonly newest: number | undefined;
    };

/** What the caller of {@link SessionRunner.wake} knows of the session. */
export interface Wake {
  /** Another host may have appended to the session since this host loaded it. */
  readonly mayBeOutdated?: boolean;
  /** The position of the newest record, as the caller has just read it. */
  readonly newest?: number | undefined;
}

/** After these leave reasons the feedback of the runner is lost. */
const LOSES_FEEDBACK: ReadonlySet<LeaveReason> = new Set(['foreign_writer', 'abandoned', 'journal_invalid', 'deleted']);

/** Runs one session in this host's memory, until it leaves the session. */
export class SessionRunner {
  /** The session this runner works for. */
  readonly ref: SessionRef;
  readonly #ports: RunnerPorts;
  /** The id of this host and its generation: see {@link RunnerOptions.host}. */
  readonly #host: string;
  readonly #onLeft: (left: LeftSession) => void;
  readonly #exit: SessionExit;
  readonly #mailbox: Mailbox;
  readonly #worker: SessionWorker;
  readonly #work: SessionWork;
  readonly #writer: JournalWriter;
  readonly #feedback: FeedbackIntake;
  readonly #inbox: InboxReader;
  readonly #lifecycle: SessionLifecycle;
  readonly #copy: SessionCopy;
  readonly #intake: SessionIntake;
  #inboxJobIsQueued = false;
  /** Functions that resolve the promises of {@link wake}. */
  #wakes: readonly (() => void)[] = [];
  #closed: Promise<void> = Promise.resolve();

  /**
   * @param onLeft called once, when the runner has left the session.
   * @param carried what the session's last runner on this host has left.
   */
  constructor(
    given: RunnerPorts,
    ref: SessionRef,
    options: RunnerOptions,
    onLeft: (left: LeftSession) => void,
    carried: Carried = { outcomes: new Map(), feedback: new FeedbackBuffer(), unansweredFirst: null },
  ) {
    const ports = { ...given, log: sessionLog(given.log, ref, () => this.#writer.committedState) };
    const { clock, log } = ports;
    this.#ports = ports;
    this.ref = ref;
    this.#host = options.host;
    this.#onLeft = onLeft;
    this.#exit = new SessionExit(options.isOwnRecord, (reason, message) => this.#close(reason, message));
    this.#mailbox = new Mailbox(clock, (job) => this.#handleJob(job));
    this.#worker = new SessionWorker(
      ports,
      ref,
      () => this.#writer.view(),
      (source, text) => this.#takeFeedback(source, text),
      (input) => this.#mailbox.post({ kind: 'step', input }),
    );
    const to = {
      offer: (outcome: Outcome) => {
        // Feedback that precedes a result is recorded before it.
        this.#feedback.post();
        this.#mailbox.post({ kind: 'outcome', outcome });
      },
      broken: (error: Error) => this.#mailbox.post({ kind: 'broken', error }),
    };
    this.#work = new SessionWork(
      new EffectTable(ref.sessionId, this.#worker, clock, log, to, carried.outcomes),
      timerWrites(ports.timers, ref, clock, log),
      ports.rememberedRules && ruleWrites(ports.rememberedRules, ref, clock, log),
      options,
    );
    const postFeedback = () => this.#mailbox.post({ kind: 'feedback' });
    this.#feedback = new FeedbackIntake(carried.feedback, log, ref.sessionId, postFeedback);
    this.#inbox = new InboxReader(ports.inbox, ref, log);
    const unrecorded = new UnrecordedReceipts();
    const parts = { exit: this.#exit, work: this.#work, inbox: this.#inbox, feedback: this.#feedback, unrecorded };
    this.#writer = new JournalWriter(ports, ref, options, parts, carried.unansweredFirst);
    const withWriter = { ...parts, writer: this.#writer };
    this.#lifecycle = new SessionLifecycle(ports, ref, options, withWriter);
    this.#copy = new SessionCopy(ports, ref, {
      host: options.host,
      exit: this.#exit,
      session: () => this.#writer.session,
      apply: (session, input, place, copiedAt) => this.#intake.apply(session, input, place, copiedAt),
      recordHooks: (session) => this.#lifecycle.recordHooks(session),
      reloadOrLeave: () => this.#lifecycle.reloadOrLeave(),
    });
    this.#intake = new SessionIntake(ports, ref, { ...withWriter, lifecycle: this.#lifecycle, copy: this.#copy });
  }

  // ---- what the host sees ----

  /** For meters: see {@link JournalWriter.summary}. */
  get summary(): SessionSummary | null {
    return this.#writer.summary;
  }

  /** The status after the newest record, where this host knows it: see {@link JournalWriter.status}. */
  get status(): SessionStatus | null {
    return this.#writer.status;
  }

  /** The text so far of the run's newest answer ({@link SessionWorker.answer}). */
  get answer(): AnswerSoFar {
    return this.#worker.answer;
  }

  /**
   * Whether work is in flight that a stopping host should let end: a job, or what {@link SessionWork.hasWorkToDrain}
   * names. Never after the runner has left: it appends nothing more.
   */
  get hasWorkToDrain(): boolean {
    return !this.#exit.hasLeft && (!this.#mailbox.isEmpty || this.#work.hasWorkToDrain);
  }

  /** Whether the session needs a host. True also while it is not loaded. */
  get hasWork(): boolean {
    const { session } = this.#writer;
    return session === null || workOf(session.actor.state).length > 0 || this.hasWorkToDrain;
  }

  /**
   * Milliseconds since the last job ended. 0 while something keeps the session here: a job, a running effect, or a timer or
   * remembered rule that is not stored yet. On the session's owner, an open effect that has not started keeps it, too. A
   * stored timer does not keep it: it wakes the session on any host.
   */
  idleMs(): number {
    const isIdle = this.#mailbox.isEmpty && this.#work.isIdle && !this.#hasOwnWork;
    return isIdle ? this.#mailbox.emptyForMs : 0;
  }

  get #hasOwnWork(): boolean {
    const { session, isOwner } = this.#writer;
    return session !== null && isOwner && workOf(session.actor.state).length > 0;
  }

  // ---- what the host calls ----

  /** A command or a due timer has arrived. */
  notify(notification: RunnerNotification): void {
    if (this.#exit.hasLeft) return;
    this.#inbox.notify(notification);
    this.#postInbox();
  }

  /** The host's table of hooks has changed. */
  hooksChanged(): void {
    this.#lifecycle.hooksChanged();
    // A new run reads the table itself. If no session is loaded, the next claim records the table.
    if (this.#writer.session && !this.#mailbox.some(({ kind }) => kind === 'hooks'))
      this.#mailbox.post({ kind: 'hooks' });
  }

  /**
   * Wakes the session, for example after a restart of the host, a failure, or a regained lease. If the session has open
   * effects other than timers, the runner owns it and continues them. Resolves when the session is owned, needs no
   * owner, or was left.
   */
  wake({ mayBeOutdated = false, newest }: Wake = {}): Promise<void> {
    if (this.#exit.hasLeft) return Promise.resolve();
    return new Promise((resolve) => {
      this.#wakes = [...this.#wakes, resolve];
      this.#mailbox.post({ kind: 'wake', handled: resolve, mayBeOutdated, newest });
    });
  }

  /**
   * Starts no further model call and no compaction; tool calls run to their end ({@link SessionWork.quiesce}). For a host that
   * stops, or has lost the session's partition.
   */
  quiesce(): void {
    this.#work.quiesce();
  }

  /** Starts model calls and compactions again: the session stays on this host after all. */
  resume(): void {
    this.#work.resume();
    void this.wake();
  }

  /** Frees memory that an idle session does not need until it gets work. */
  releaseMemory(): void {
    if (this.idleMs() > 0) this.#writer.session?.actor.releaseMemory();
  }

  /** Stores a snapshot if one is due, then leaves the session if it is still idle. */
  async passivate(): Promise<void> {
    await this.keepSnapshot();
    if (this.idleMs() > 0) this.leave('passivated');
  }

  /** Stores a snapshot if one is due: see {@link JournalWriter.keepSnapshot}. */
  keepSnapshot(): Promise<void> {
    return this.#writer.keepSnapshot();
  }

  /** Leaves the session at once: effects are aborted, nothing more is appended. */
  leave(reason: 'abandoned' | 'passivated' | 'handed_over' = 'abandoned'): void {
    this.#exit.leave(reason, reason);
  }

  /** Resolves when the tool connections of a session that was left are closed. Resolved until the session is left. */
  get closed(): Promise<void> {
    return this.#closed;
  }

  // ---- jobs (RUNNER-5) ----

  #postInbox(): void {
    if (this.#inboxJobIsQueued) return;
    this.#inboxJobIsQueued = true;
    this.#mailbox.post({ kind: 'inbox' });
  }

  #takeFeedback(source: string, text: string): void {
    if (this.#exit.hasLeft) return;
    this.#feedback.take(source, text, this.#writer.session?.actor.state.context.feedback.length ?? 0);
  }

  /** Every {@link SessionLeft} ends here, and with it the job. The runner has closed the mailbox before. */
  async #handleJob(job: Job): Promise<void> {
    try {
      try {
        await this.#handle(job);
      } catch (error) {
        if (job.kind === 'outcome') await this.#lifecycle.failRunAfterOutcome(job.outcome, error as Error);
        else await this.#lifecycle.failRunAfterError(error as Error);
      }
    } catch (error) {
      if (!(error instanceof SessionLeft)) throw error;
    }
    if (job.kind !== 'wake') return;
    this.#wakes = this.#wakes.filter((handled) => handled !== job.handled);
    job.handled();
  }

  async #handle(job: Job): Promise<void> {
    if (job.kind === 'inbox') {
      this.#inboxJobIsQueued = false;
      if (!this.#writer.session && (await this.#intake.dropSpentTimers())) return;
    }
    const isWake = job.kind === 'wake';
    const loaded = this.#writer.session ?? (await this.#lifecycle.load(!isWake, isWake ? job.newest : undefined));
    this.#exit.throwIfLeft();
    if (!isWake || loaded.copy) await this.#lifecycle.readTranscript();
    await this.#copy.complete(this.#writer.session ?? loaded);
    const session = this.#writer.session ?? loaded;
    switch (job.kind) {
      case 'inbox':
        await this.#intake.read(session);
        return;
      case 'outcome':
        await this.#writer.apply(session, this.#lifecycle.withNewestHooks(job.outcome));
        return;
      case 'hooks':
        // If another host wrote last, the next claim records the table.
        if (this.#writer.isOwner) await this.#lifecycle.recordHooks(session);
        return;
      case 'step':
        // Progress of a step that another host owns by now is dropped.
        if (this.#writer.isOwner) await this.#writer.apply(session, job.input);
        return;
      case 'feedback':
        return this.#recordFeedback(session);
      case 'broken':
        throw job.error;
      case 'wake':
        return this.#handleWake(session, job);
      default:
        return assertNever(job);
    }
  }

  async #recordFeedback(session: Live): Promise<void> {
    if (!this.#feedback.startJob()) return;
    await this.#lifecycle.takeOwnership(session);
    const owned = this.#writer.session ?? session;
    await this.#writer.apply(owned, this.#feedback.buffer.offer(owned.n + 1, this.#host));
    this.#feedback.buffer.recorded();
  }

  async #handleWake(session: Live, { mayBeOutdated, handled }: Extract<Job, { kind: 'wake' }>): Promise<void> {
    // The loaded state may be outdated: if this runner has appended nothing since, no fence has checked it.
    if (mayBeOutdated && !(await this.#lifecycle.confirmNewest(session))) {
      this.#exit.leave('journal_unavailable', 'the writer of the last record is unknown');
      return;
    }
    // The store repeats the deliveries of the former owner only after their timeout: read the inbox now.
    if (!this.#writer.isOwner) {
      this.#inbox.catchUp();
      this.#postInbox();
    }
    // A stored timer is the same for every host: a session that only waits for one is not claimed.
    if (workOf(session.actor.state).length > 0) {
      await this.#lifecycle.takeOwnership(session);
      // The session is owned, so the host may claim the next one. Only the effects need the transcript.
      handled();
      await this.#lifecycle.readTranscript();
    }
    this.#writer.reconcile();
  }

  // ---- leaving ----

  #close(reason: LeaveReason, message: string): void {
    if (LOSES_FEEDBACK.has(reason)) this.#feedback.lose();
    this.#mailbox.close();
    for (const handled of this.#wakes) handled();
    this.#work.closeWrites();
    const carried = {
      outcomes: this.#work.effects.close(),
      feedback: this.#feedback.buffer,
      unansweredFirst: this.#writer.unansweredFirst,
    };
    this.#closed = this.#worker.dispose().then((notes) => {
      for (const note of notes) this.#ports.log.warn({ session_id: this.ref.sessionId }, note);
    });
    this.#onLeft({ reason, message, carried, hasWritten: this.#writer.hasWritten });
  }
}

/** The mailbox of a session: handles one job at a time, in order (RUNNER-5). Measures how long it has been empty. */
class Mailbox {
  readonly #clock: Pick<Clock, 'monotonicMs' | 'yield'>;
  readonly #handle: (job: Job) => Promise<void>;
  readonly #jobs: Job[] = [];
  #working = false;
  #closed = false;
  #emptySinceMs: number;

  /** @param handle handles one job, with its errors. A rejection is a broken invariant, and ends as unhandled. */
  constructor(clock: Pick<Clock, 'monotonicMs' | 'yield'>, handle: (job: Job) => Promise<void>) {
    this.#clock = clock;
    this.#handle = handle;
    this.#emptySinceMs = clock.monotonicMs();
  }

  /** Whether no job is in progress or queued. */
  get isEmpty(): boolean {
    return !this.#working && this.#jobs.length === 0;
  }

  /** Milliseconds since the last job ended. Only valid while the mailbox is empty. */
  get emptyForMs(): number {
    return this.#clock.monotonicMs() - this.#emptySinceMs;
  }

  /** Whether a queued job matches. The job in progress does not count. */
  some(like: (job: Job) => boolean): boolean {
    return this.#jobs.some(like);
  }

  /** Queues a job, and starts to work if idle. A closed mailbox ignores it. */
  post(job: Job): void {
    if (this.#closed) return;
    this.#jobs.push(job);
    if (this.#working) return;
    this.#working = true;
    void this.#work();
  }

  /** Discards the queued jobs. The job in progress ends by itself. */
  close(): void {
    this.#closed = true;
    this.#jobs.length = 0;
  }

  async #work(): Promise<void> {
    for (let job = this.#jobs.shift(); job !== undefined && !this.#closed; job = this.#jobs.shift()) {
      await this.#handle(job);
      // A model and a tool that answer at once must not starve commands from outside.
      await this.#clock.yield();
    }
    this.#working = false;
    this.#emptySinceMs = this.#clock.monotonicMs();
  }
}
