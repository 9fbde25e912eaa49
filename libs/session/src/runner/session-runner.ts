/**
 * The runner: one session's mailbox, its commits and its effects.
 *
 * R1  Appending one record to the journal is the only commit point.
 * R2  A record holds all events of one step: the one input and everything that follows from it until the machine waits.
 * R3  State that anyone else can see changes only after the append is acknowledged.
 * R4  An effect starts only after the record that asked for it is acknowledged.
 * R5  Every outcome comes back through the session's one mailbox: one writer, one order. Nothing in it waits for
 *     anything but its append.
 * R6  Effects are reconciled: after each commit and after recovery, by the same code.
 * R7  A command's inbox position stands in the record that consumed it; acknowledging its delivery follows from that.
 * R8  Every queue, retry, wait and memory of ids has a bound: the mailbox holds at most the deliveries that the inbox
 *     lets be under way, one outcome per open effect, and one job for the feedback that waits in its own bounded buffer.
 * R9  A settled outcome is kept until a record that holds it is acknowledged; a refold offers it again.
 * R10 A runner whose append is refused by a foreign record aborts its effects and appends nothing more. The session's
 *     next runner begins with `owned {epoch: last + 1}`.
 * R11 A command leaves no record where a quota is used up, or where rejections have their share of the newest commands. It
 *     is judged by the newest state, and its receipt is sent once its delivery is acknowledged or the cursor has passed it.
 *     So a command that was rejected is not taken later unless it is sent again.
 */
import type {
  CommandInbox,
  Doorbell,
  Journal,
  Retention,
  SessionSummary,
  Snapshots,
  StoredCommand,
  StoredRecord,
  Timers,
} from '@coxswain/ports';
import {
  type AnswerSoFar,
  assertNever,
  BOUNDS,
  type CommandInput,
  type CommandProblem,
  type Cursor,
  type ErrorCode,
  type EventOf,
  type Input,
  isCrewVerb,
  isOfPersona,
  type JournalRecord,
  type Outcome,
  type PersonaStepInput,
  type QuotaName,
  type SessionEvent,
  type SessionRef,
  type SessionStatus,
  type TimerInput,
  toWellFormed,
} from '@coxswain/protocol';
import {
  decide,
  effectsOf,
  isEnded,
  pendingBytes,
  recordsRejection,
  type SessionState,
  timersOf,
  type WorkEffect,
} from '@coxswain/turn';
import { tellParent } from '../effects/crew-effects.ts';
import { EffectTable } from '../effects/effect-table.ts';
import { seenTable } from '../effects/hook-table.ts';
import { SessionWorker, type WorkerPorts } from '../effects/session-worker.ts';
import type { CommandQuotas, QuotaProblem } from '../hosting/command-quotas.ts';
import type { LoadTurns } from '../hosting/load-turns.ts';
import { COMMIT_BOUNDS, type CommitBounds, foreignRecord } from '../journal/commit.ts';
import { SessionCopy } from '../journal/copy-session.ts';
import { copyAfter, ImportUnfinishedError, isUnfinishedImport } from '../journal/copy-state.ts';
import {
  type LiveSession as Live,
  type LoadedSession,
  loadSession,
  readTranscript,
  snapshotBytes,
  transcriptOf,
} from '../journal/load-session.ts';
import { asksForFork } from '../journal/plan-fork.ts';
import { buildRecord, isRecordTooLarge, type SealedRecord, sealRecord } from '../journal/seal-record.ts';
import { tombstoneOf } from '../journal/tombstone-of.ts';
import { SessionObserver } from '../trace/observe-session.ts';
import { sessionLog } from '../trace/session-log.ts';
import { admitCommand, admitTimer } from './admit-command.ts';
import { appendRecord, SessionLeft } from './append-record.ts';
import { checkCommand } from './check-command.ts';
import { withinPolicy } from './check-policy.ts';
import { FeedbackBuffer, noteLostFeedback } from './feedback-buffer.ts';
import { InboxReader } from './inbox-reader.ts';
import { Mailbox } from './mailbox.ts';
import { checkStart } from './refuse-start.ts';
import { namesMessage, repeatedStart } from './repeated-start.ts';
import { RuleTable } from './rule-table.ts';
import { statusOf, summaryOf } from './session-status.ts';
import { areSpent } from './spent-timers.ts';
import { TimerTable } from './timer-table.ts';

/** The ports that a runner uses. */
export interface RunnerPorts extends WorkerPorts {
  /** The host's quotas; nothing is limited where they are left out. */
  readonly quotas?: CommandQuotas | undefined;
  readonly journal: Journal;
  readonly inbox: CommandInbox;
  readonly snapshots: Snapshots;
  readonly timers: Timers;
  /** Asked at a deletion; without it no purge is promised. */
  readonly retention?: Retention | undefined;
}

/** How a runner behaves. */
export interface RunnerOptions {
  /** Who writes: this host's incarnation, and which of its turns at the session. Stands in every record as `attempt`. */
  readonly host: string;
  /** Whether a record's `attempt` is of this host's incarnation, in whichever turn. */
  readonly isOwn: (attempt: string) => boolean;
  /** A snapshot every so many records. */
  readonly snapshotEvery: number;
  readonly commitBounds?: CommitBounds | undefined;
  /** Resolves when it is noted that this host works on the session: nothing of it is recorded before. */
  readonly noted: () => Promise<void>;
  /** Notes it once more, as it has work again. */
  readonly notedAgain: () => void;
  /** The host's sessions are loaded in turns. */
  readonly loads: LoadTurns;
  /** And so are the transcripts of those that were taken up without. */
  readonly transcripts: LoadTurns;
  /** And the journals of those whose spans began elsewhere. */
  readonly traces: LoadTurns;
  /** Whether effects may begin: whether the host still has its lease. */
  readonly mayBegin: () => boolean;
}

/**
 * Why a runner has gone. `deleted`: a tombstone stands in the journal. `late_append`: an append that an earlier runner of this host had given up has landed after all;
 * nobody else works on the session.
 */
export type DropReason =
  | 'foreign_writer'
  | 'late_append'
  | 'journal_unavailable'
  | 'unrecoverable'
  | 'abandoned'
  | 'passivated'
  | 'handed_over'
  | 'unloadable'
  | 'unreadable'
  | 'deleted';

/** What a runner has that no record holds. */
export interface Carried {
  /** Settled outcomes (R9). */
  readonly outcomes: ReadonlyMap<string, Outcome>;
  /** Inbox feedback. Empty where somebody else works on the session, or nobody will: it was about what happened here. */
  readonly feedback: FeedbackBuffer;
  /** The session's first record, if its append was given up without an answer: it may still be stored. */
  readonly unsettled: SealedRecord | null;
}

/** What the host is told when a runner has gone. */
export interface Dropped {
  readonly reason: DropReason;
  readonly message: string;
  /** For the session's next runner on this host. */
  readonly carried: Carried;
  /** Whether it had written anything once it was read: the journal was there in the meantime. */
  readonly hasWritten: boolean;
}

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
      readonly isNews: boolean;
      readonly newest: number | undefined;
    };

/** What whoever wakes a session knows of it. */
interface Wake {
  /** Somebody else may have gone on with it since it was loaded here. */
  readonly isNews?: boolean;
  /** Where its newest record stands, as was just read: it is not looked for again. */
  readonly newest?: number | undefined;
}

/** Nobody will tell the session what it was not told yet, or somebody else has it. */
const LOSES_FEEDBACK: ReadonlySet<DropReason> = new Set(['foreign_writer', 'abandoned', 'unreadable', 'deleted']);

/** What is wrong with a journal itself, and not with reaching it; or that there is none any more. */
const UNREADABLE: ReadonlySet<string> = new Set<ErrorCode>([
  'record_unreadable',
  'chain_broken',
  'blob_missing',
  'machine_version_unknown',
  'replay_diverged',
  'import_unfinished',
  'session_deleted',
]);

const NONE: ReadonlySet<string> = new Set();

/** A session that lives on this host. */
export class SessionRunner {
  readonly #ports: RunnerPorts;
  readonly #ref: SessionRef;
  readonly #options: RunnerOptions;
  readonly #onDropped: (dropped: Dropped) => void;
  readonly #worker: SessionWorker;
  readonly #effects: EffectTable;
  readonly #timers: TimerTable;
  readonly #rules: RuleTable;
  readonly #mailbox: Mailbox<Job>;
  readonly #inbox: InboxReader;
  #inboxJobWaits = false;
  readonly #copy: SessionCopy;
  readonly #feedback: FeedbackBuffer;
  /** See {@link Carried.unsettled}. */
  #unsettled: SealedRecord | null;
  #feedbackJobWaits = false;
  /** The host's table of hooks may be another than the one that the journal holds. */
  #hooksMayDiffer = true;
  /** Those who wait until it has been woken. */
  #awaited: readonly (() => void)[] = [];
  #dropped = false;
  /** That and when the session was deleted, once this runner has seen it. */
  #deleted: string | null = null;
  #quiescing = false;
  /** Effects whose outcomes broke the machine once: they are not offered a second time. */
  #poisoned: ReadonlySet<string> = NONE;
  #session: Live | null = null;
  #committed: SessionStatus | null = null;
  #committedState: SessionState | null = null;
  /** Whether a record was sent whose storage is not acknowledged yet: others may read it already. */
  #appending = false;
  #sinceSnapshot = 0;
  /** Whether there was work when it was last looked at. */
  #hadWork = false;
  #hasWritten = false;
  #left: Promise<void> = Promise.resolve();
  readonly #observer: SessionObserver;
  /** The command that is being taken in. */
  #taking: StoredCommand | null = null;
  /** Receipts of commands without a record, by their places, until these are settled (R11). */
  readonly #unsettledReceipts = new Map<number, () => void>();
  /** Bytes of queued injections that the host's quotas know of. */
  #notedPending = 0;
  /** The log has been told that rejections get no record any longer. */
  #warnedOfRejections = false;

  constructor(
    given: RunnerPorts,
    ref: SessionRef,
    options: RunnerOptions,
    onDropped: (dropped: Dropped) => void,
    carried: Carried = { outcomes: new Map(), feedback: new FeedbackBuffer(), unsettled: null },
  ) {
    const ports = { ...given, log: sessionLog(given.log, ref, () => this.#committedState) };
    this.#ports = ports;
    this.#feedback = carried.feedback;
    this.#unsettled = carried.unsettled;
    this.#ref = ref;
    this.#observer = new SessionObserver(ports, ref, options.traces);
    this.#options = options;
    this.#onDropped = onDropped;
    const feedback = (source: string, text: string) => this.#takeFeedback(source, text);
    const tell = (input: PersonaStepInput) => this.#mailbox.post({ kind: 'step', input });
    this.#worker = new SessionWorker(ports, ref, () => this.#view(), feedback, tell);
    const to = {
      offer: (outcome: Outcome) => {
        // What was said before a call came back is in the journal before its result.
        this.#postFeedback();
        this.#mailbox.post({ kind: 'outcome', outcome });
      },
      broken: (error: Error) => this.#mailbox.post({ kind: 'broken', error }),
    };
    this.#effects = new EffectTable(ref.sessionId, this.#worker, ports.clock, ports.log, to, carried.outcomes);
    this.#timers = new TimerTable(ports.timers, ref, ports.clock, ports.log);
    this.#rules = new RuleTable(ports.rememberedRules, ref, ports.clock, ports.log);
    this.#inbox = new InboxReader(ports.inbox, ref, ports.log);
    this.#copy = new SessionCopy(ports, ref, {
      host: options.host,
      session: () => this.#session,
      checkNotLeft: () => this.#checkNotLeft(),
      step: (session, input, cursor, copiedAt) => this.#step(session, input, cursor, copiedAt),
      seeHooks: (session) => this.#seeHooks(session),
      foldAgain: () => this.#foldAgain(),
      leave: (message) => this.#drop('journal_unavailable', message),
    });
    this.#mailbox = new Mailbox(ports.clock, (job) => this.#work(job));
  }

  /** For meters; null while the session is not loaded, or where there is none. */
  get summary(): SessionSummary | null {
    return this.#committedState && summaryOf(this.#committedState);
  }

  /** The session this runner works for. */
  get ref(): SessionRef {
    return this.#ref;
  }

  /** A command has arrived. */
  ring(doorbell: Doorbell): void {
    if (this.#dropped) return;
    this.#inbox.ring(doorbell);
    this.#postInbox();
  }

  #postInbox(): void {
    if (this.#inboxJobWaits) return;
    this.#inboxJobWaits = true;
    this.#mailbox.post({ kind: 'inbox' });
  }

  /** The host's table of hooks has changed. */
  hooksChanged(): void {
    this.#hooksMayDiffer = true;
    // A run that begins brings the table with it, and a session that is not loaded is looked at when it is.
    if (this.#session && !this.#mailbox.some(({ kind }) => kind === 'hooks')) this.#mailbox.post({ kind: 'hooks' });
  }

  /** Takes the session up after a restart: owns it and goes on with what is open. Resolves when it has, or was left. */
  wake({ isNews = false, newest }: Wake = {}): Promise<void> {
    if (this.#dropped) return Promise.resolve();
    return new Promise((resolve) => {
      this.#awaited = [...this.#awaited, resolve];
      this.#mailbox.post({ kind: 'wake', handled: resolve, isNews, newest });
    });
  }

  /**
   * The session after its newest acknowledged record (R3). Null where only the journal knows the newest record: while the
   * session is loaded, or unknown, while an append waits for its acknowledgement, or where another host wrote last.
   */
  get status(): SessionStatus | null {
    if (!this.#committedState || this.#appending || this.#session?.writer !== this.#options.host) return null;
    const { n, at } = this.#session;
    if (this.#committed?.n !== n) this.#committed = statusOf(this.#committedState, n, at);
    return this.#committed;
  }

  /** The text so far of the answer that this host streams. */
  get answer(): AnswerSoFar {
    return this.#worker.answer;
  }

  /** Whether something runs that a stopping host should let end: anything but a model call, which can be made again. */
  get isDraining(): boolean {
    return (
      !this.#mailbox.isEmpty ||
      this.#unacknowledged > 0 ||
      this.#effects.keeps(['provision', 'call_tool', 'consult', 'check_stop', 'close_tools'])
    );
  }

  /**
   * Milliseconds for which nothing has run and nothing has waited; 0 while something does. A timer that the store has
   * acknowledged wakes the session wherever it is; one that it has not keeps it here, and so does work that may not begin now.
   */
  idleMs(): number {
    const idle = this.#mailbox.isEmpty && this.#effects.running === 0 && this.#unacknowledged === 0;
    return idle && !this.#hasOwnWork ? this.#mailbox.emptyForMs : 0;
  }

  /** Where another host wrote last, what is open is that one's. */
  get #hasOwnWork(): boolean {
    return this.#session?.writer === this.#options.host && workOf(this.#session.actor.state).length > 0;
  }

  /** What stores outside the journal have not acknowledged: it keeps the session here. */
  get #unacknowledged(): number {
    return this.#timers.unacknowledged + this.#rules.unacknowledged;
  }

  /** Starts no model call more; calls that are under way or recorded may end. For a host that stops in order. */
  quiesce(): void {
    this.#quiescing = true;
  }

  /** Begins model calls again: the session stays here after all. */
  goOn(): void {
    this.#quiescing = false;
    void this.wake();
  }

  /** Whether somebody has to go on with it; also where that is not known. */
  get hasWork(): boolean {
    return this.#session === null || workOf(this.#session.actor.state).length > 0 || this.isDraining;
  }

  /** Resolves when the tool connections of a session that was left are closed. */
  get left(): Promise<void> {
    return this.#left;
  }

  /** Leaves the session at once: effects are aborted, nothing more is appended. */
  abandon(reason: 'abandoned' | 'passivated' | 'handed_over' = 'abandoned'): void {
    this.#drop(reason, reason);
  }

  /** Lets go of what an idle session can be without until it gets work. */
  rest(): void {
    if (this.idleMs() > 0) this.#session?.actor.rest();
  }

  /** Keeps a snapshot and leaves the session. Only for an idle one. */
  async passivate(): Promise<void> {
    await this.keep();
    if (this.idleMs() > 0) this.#drop('passivated', 'passivated');
  }

  /**
   * Keeps a snapshot of what was recorded since the last one. Not of a session that was left because an append was not
   * answered: its actor is ahead of the journal, and the next owner would count a command as accepted that has no record.
   */
  async keep(): Promise<void> {
    if (this.#dropped) return;
    if (this.#session && this.#session.n > 0 && this.#sinceSnapshot > 0) await this.#snapshot(this.#session);
  }

  async #work(job: Job): Promise<void> {
    try {
      await this.#handleOrRecover(job);
    } catch (error) {
      if (!(error instanceof SessionLeft)) throw error;
    }
    if (job.kind !== 'wake') return;
    this.#awaited = this.#awaited.filter((handled) => handled !== job.handled);
    job.handled();
  }

  async #handleOrRecover(job: Job): Promise<void> {
    try {
      await this.#handle(job);
    } catch (error) {
      if (error instanceof SessionLeft) throw error;
      if (job.kind !== 'outcome') await this.#refold(error as Error);
      else await this.#poison(job.outcome, error as Error);
    }
  }

  async #handle(job: Job): Promise<void> {
    if (job.kind === 'inbox') {
      this.#inboxJobWaits = false;
      if (!this.#session && (await this.#dropSpentTimers())) return;
    }
    const isTakenUp = job.kind === 'wake';
    const loaded = this.#session ?? (await (isTakenUp ? this.#load(false, job.newest) : this.#load()));
    this.#checkNotLeft();
    if (!isTakenUp || loaded.copy) await this.#readOn();
    await this.#copy.complete(this.#session ?? loaded);
    const session = this.#session ?? loaded;
    switch (job.kind) {
      case 'inbox':
        await this.#readInbox(session);
        // What came behind a deletion, or has shown that there was one.
        if (this.#deleted !== null) await this.#inbox.refuse(this.#ports.publisher, 'session_deleted', this.#deleted);
        return;
      case 'outcome':
        await this.#step(session, job.outcome);
        if (job.outcome.type === 'provision_outcome') await this.#seeHooks(this.#session ?? session);
        return;
      case 'hooks':
        // One that another host wrote last is looked at when it is taken over.
        if (session.writer === this.#options.host) await this.#seeHooks(session);
        return;
      case 'step':
        // Whoever has taken the session over learns by itself how its step fares.
        if (session.writer === this.#options.host) await this.#step(session, job.input);
        return;
      case 'feedback':
        return this.#recordFeedback(session);
      case 'broken':
        throw job.error;
      case 'wake':
        // What was loaded for a delivery that was only to be acknowledged has nothing to write, so that no fence says
        // what another host has made of it since.
        if (job.isNews && !(await this.#isNewest(session))) {
          this.#drop('journal_unavailable', 'the writer of the last record is unknown');
          return;
        }
        // What was delivered to another host is delivered again only when that host's time for it is over.
        if (session.writer !== this.#options.host) {
          this.#inbox.catchUp();
          this.#postInbox();
        }
        // A timer is the same whoever puts it into the store: a session that only sleeps is not owned for it.
        if (!workOf(session.actor.state).length) this.#reconcile();
        else {
          await this.#own(session);
          // The next may be taken up: what was said here so far is only needed by what goes on now.
          job.handled();
          await this.#readOn();
          this.#reconcile();
        }
        return;
      default:
        return assertNever(job);
    }
  }

  #reconcile(): void {
    const state = this.#session?.actor.state;
    if (!state) return;
    this.#timers.reconcile(timersOf(state));
    this.#rules.reconcile(state.context.remembered);
    const work = workOf(state);
    // The first record comes right after the note.
    if (work.length > 0 && !this.#hadWork && (this.#session?.n ?? 0) > 1) this.#options.notedAgain();
    this.#hadWork = work.length > 0;
    if (!this.#session?.transcript) return;
    this.#effects.reconcile(
      work,
      (effect) => this.#options.mayBegin() && !(this.#quiescing && ['call_model', 'compact'].includes(effect.kind)),
    );
  }

  // ---- feedback ----

  #takeFeedback(source: string, text: string): void {
    if (this.#dropped) return;
    this.#feedback.add(source, text);
    // Where no more may wait it is only counted, and the count waits for the next outcome: a server that never stops
    // talking must not fill the journal.
    const waiting = this.#session?.actor.state.context.feedback.length ?? 0;
    if (waiting < BOUNDS.feedbackPendingMax) this.#postFeedback();
  }

  #postFeedback(): void {
    if (this.#feedbackJobWaits || this.#feedback.isEmpty) return;
    this.#feedbackJobWaits = true;
    this.#mailbox.post({ kind: 'feedback' });
  }

  async #recordFeedback(session: Live): Promise<void> {
    this.#feedbackJobWaits = false;
    if (this.#feedback.isEmpty) return;
    await this.#own(session);
    const owned = this.#session ?? session;
    const input = this.#feedback.offer(owned.n + 1, this.#options.host);
    await this.#step(owned, input);
    this.#feedback.recorded();
  }

  /**
   * What an earlier runner of this host was told is recorded now, and its outcomes wait for their effects; unless another host has
   * worked on the session since: then the one is lost, and of the others those are late that nobody waits for.
   */
  #takeUpCarried(loaded: LoadedSession): void {
    if (loaded.n === 0 || this.#options.isOwn(loaded.writer)) {
      this.#postFeedback();
      return;
    }
    this.#loseFeedback();
    this.#effects.dropLate(workOf(loaded.actor.state));
  }

  #loseFeedback(): void {
    if (this.#feedback.isEmpty) return;
    this.#feedback.clear();
    noteLostFeedback(this.#ports.log, this.#ref.sessionId);
  }

  // ---- loading ----

  /**
   * @param whole with its transcript. Without, a session can be owned, and no more: {@link SessionRunner.#readOn}.
   * @throws {SessionLeft}
   */
  #load(whole = true, newest?: number): Promise<Live> {
    return this.#options.loads.take(() => this.#loadNow(whole, newest));
  }

  async #loadNow(whole: boolean, newest: number | undefined): Promise<Live> {
    this.#checkNotLeft();
    try {
      // Side by side, as a session that wakes should not wait for two things.
      const [loaded] = await Promise.all([
        loadSession(this.#ports, this.#ref, whole, (record) => this.#feedback.recall(record), newest),
        this.#options.noted(),
      ]);
      this.#checkNotLeft();
      if (isUnfinishedImport(loaded)) throw new ImportUnfinishedError(this.#ref.sessionId, loaded.n);
      const { tail, ...live } = loaded;
      this.#session = live;
      this.#sinceSnapshot = tail;
      this.#hadWork = workOf(live.actor.state).length > 0;
      if (loaded.n > 0) this.#committedState = loaded.actor.state;
      this.#notePending(pendingBytes(loaded.actor.state.context));
      this.#takeUpCarried(loaded);
      return live;
    } catch (error) {
      if (error instanceof SessionLeft) throw error;
      await this.#dropUnloaded(error as Error);
      throw new SessionLeft();
    }
  }

  /** Reads the transcript, unless it stands. @throws {SessionLeft} */
  async #readOn(): Promise<void> {
    if (this.#session?.transcript) return this.#checkNotLeft();
    return this.#options.transcripts.take(async () => {
      const session = this.#session;
      if (!session) throw new SessionLeft();
      this.#checkNotLeft();
      try {
        const recall = (record: JournalRecord) => this.#feedback.recall(record);
        const transcript = await readTranscript(this.#ports, this.#ref, session, recall);
        this.#session = { ...session, transcript };
      } catch (error) {
        await this.#dropUnloaded(error as Error);
      }
      this.#checkNotLeft();
    });
  }

  async #dropUnloaded({ code, message }: Error & { readonly code?: ErrorCode }): Promise<void> {
    if (code === undefined || !UNREADABLE.has(code)) return this.#drop('unloadable', message);
    await this.#inbox.refuse(this.#ports.publisher, code, message);
    this.#drop(code === 'session_deleted' ? 'deleted' : 'unreadable', message);
  }

  /** The first record of a session on a host that did not write its newest one says so (R10). @throws {SessionLeft} */
  async #own(session: Live): Promise<void> {
    if (session.n === 0) return;
    if (session.writer === this.#options.host) return this.#seeHooks(session);
    const epoch = session.actor.state.context.epoch + 1;
    await this.#step(session, { type: 'owned', epoch, host: this.#options.host });
    return this.#seeHooks(this.#session ?? session);
  }

  /** Puts the host's table of hooks into the journal, if it is another one. @throws {SessionLeft} */
  async #seeHooks(session: Live): Promise<void> {
    const { state } = session.actor;
    if (!this.#hooksMayDiffer || isEnded(state) || !state.context.run_started) return;
    this.#hooksMayDiffer = false;
    const seen = seenTable(this.#ports.hooks, this.#ref.tenant, state.context.hooks.filter(isOfPersona));
    if ('code' in seen) {
      this.#ports.log.error({ session_id: this.#ref.sessionId, code: seen.code }, seen.message);
      return;
    }
    if (seen.fingerprint === state.context.pinned?.hooks_fingerprint) return;
    await this.#step(session, { type: 'hooks_changed', ...seen });
  }

  // ---- commands (R7) ----

  /** A session that is not here is not loaded for timers that it waits for no more. @returns whether that was all. */
  async #dropSpentTimers(): Promise<boolean> {
    try {
      return await this.#inbox.dropSpentTimers((timers) => areSpent(this.#ports, this.#ref, timers));
    } catch {
      // Loading it says what is wrong.
      return false;
    }
  }

  async #readInbox(session: Live): Promise<void> {
    const acknowledged = await this.#inbox.read(session.cursor, async (command, place) => {
      try {
        return await this.#takeCommand(command, place);
      } catch (error) {
        // The inbox keeps the command and those after it.
        if (error instanceof SessionLeft) return false;
        throw error;
      }
    });
    this.#sendReceipts(acknowledged);
  }

  /** Sends the receipts of commands without a record that are settled. @param seqs their places in the command stream. */
  #sendReceipts(seqs: Iterable<number>): void {
    for (const seq of seqs) {
      this.#unsettledReceipts.get(seq)?.();
      this.#unsettledReceipts.delete(seq);
    }
  }

  /** @returns false where the command cannot be judged now. @throws {SessionLeft} */
  async #takeCommand(command: StoredCommand, cursor: Cursor): Promise<boolean> {
    const session = this.#session;
    if (!session) throw new SessionLeft();
    this.#checkNotLeft();
    if (command.isTimer) return this.#takeTimer(session, command, cursor);
    const input = withinPolicy(this.#ports, command, admitCommand(command, this.#ports.inbox.incarnation));
    this.#taking = command;
    try {
      return await this.#take(session, input, cursor);
    } catch (error) {
      if (error instanceof SessionLeft) throw error;
      // A command that is too large for its record is its sender's affair; one that breaks the machine is ours.
      const tooLarge = isRecordTooLarge(error);
      if (tooLarge) await this.#foldAgain();
      else await this.#refold(error as Error);
      const refolded = this.#session;
      if (!refolded) throw new SessionLeft();
      this.#checkNotLeft();
      // Either is answered and recorded, or it would come back for ever.
      const problem: CommandProblem = tooLarge
        ? {
            code: 'body_too_large',
            message: `the record that this body causes is too large: ${error.message}`,
            field: 'body',
          }
        : { code: 'session_failed', message: (error as Error).message };
      return await this.#step(refolded, { ...input, body: {}, problem }, cursor);
    } finally {
      this.#taking = null;
    }
  }

  /**
   * One that nobody waits for leaves no record, also none of its being owned. Nobody is told where one breaks the
   * machine: the run ends over it.
   * @returns false where it cannot be judged now.
   * @throws {SessionLeft}
   */
  async #takeTimer(session: Live, command: StoredCommand, cursor: Cursor): Promise<boolean> {
    const input = admitTimer(command);
    if (input === null) return true;
    const isWanted = timersOf(session.actor.state).some(({ id }) => id === input.effect_id);
    if (!isWanted) return this.#isNewest(session);
    try {
      return await this.#take(session, input, cursor);
    } catch (error) {
      if (error instanceof SessionLeft) throw error;
      await this.#refold(error as Error);
      this.#checkNotLeft();
      return true;
    }
  }

  /**
   * What is dropped leaves no record, so no fence says whether nobody waits for it indeed: another host may have gone on
   * with the session, and have put this timer into the store.
   * @returns false where that cannot be known now.
   * @throws {SessionLeft} where it is so.
   */
  async #isNewest(session: Live): Promise<boolean> {
    let later: StoredRecord | null;
    try {
      later = await this.#ports.journal.firstAfter(this.#ref, session.fence);
    } catch (error) {
      this.#ports.log.warn(
        { session_id: this.#ref.sessionId, error: (error as Error).message },
        'the journal cannot be read now',
      );
      return false;
    }
    this.#checkNotLeft();
    if (later === null) return true;
    this.#dropForeign(session.n + 1, later.bytes);
    throw new SessionLeft();
  }

  /** @returns false where it cannot be judged now. @throws {SessionLeft} */
  async #take(session: Live, given: CommandInput | TimerInput, cursor: Cursor | undefined): Promise<boolean> {
    let input = given;
    // The journal may have been read again since the inbox was, and hold more than it did then.
    if (cursor && cursor.seq <= this.#inbox.position(session.cursor)) return true;
    if (input.type === 'command' && cursor) {
      const problem = this.#quotaProblem(session, input);
      if (problem) return this.#leaveUnrecorded(session, cursor, input, quotaRejection(input, problem), problem.quota);
      const compared = session.n > 0 && namesMessage(input) ? await this.#compareStart(session, input) : input;
      if (typeof compared === 'boolean') return compared;
      input = compared;
      const judged = await this.#judgeUnrecorded(session, cursor, input);
      if (judged !== null) return judged;
    }
    if (session.n === 0 && asksForFork(input)) return this.#copy.fork(session, input, cursor);
    await this.#own(session);
    const owned = this.#session ?? session;
    const checked = input.type === 'command' ? await this.#check(owned, input) : input;
    return this.#step(owned, checked, cursor);
  }

  /**
   * A start under a message id to a session that has started. A repetition leaves no record: it gets the receipt of the first.
   * @returns the command where the machine decides it, with a problem for another start under the same message id; otherwise
   *   whether the command could be judged.
   */
  async #compareStart(session: Live, input: CommandInput): Promise<CommandInput | boolean> {
    // Without a record no fence says whether another host has deleted the session meanwhile.
    if (!(await this.#isNewest(session))) return false;
    try {
      const repeated = await repeatedStart(this.#ports, this.#ref, input);
      if (repeated === null) return input;
      if ('problem' in repeated) return { ...input, body: {}, problem: repeated.problem };
      session.receipts.repeatedStart(input, repeated.first);
      return true;
    } catch (error) {
      const { code, message } = error as Error & { readonly code?: ErrorCode };
      // What can never be compared is decided by the state of the session.
      if (code !== undefined && UNREADABLE.has(code)) return input;
      this.#ports.log.warn({ session_id: this.#ref.sessionId, error: message }, 'the journal cannot be read now');
      return false;
    }
  }

  #quotaProblem(
    { n, actor: machine }: Live,
    { verb: sent, body, receipt_to, actor }: CommandInput,
  ): QuotaProblem | null {
    // It takes room in the queue where a run is on.
    const verb = body.if_running !== undefined && !isEnded(machine.state) ? 'steer' : sent;
    const bytes = this.#taking?.payload.length ?? 0;
    const command = { ref: this.#ref, verb, bytes, receiptTo: receipt_to, actor: actor?.name, isNew: n === 0 };
    return this.#ports.quotas?.take(command) ?? null;
  }

  /**
   * Rejects a command without a record where rejections have their share (R11).
   * @returns null where it gets a record after all; otherwise whether it could be judged.
   */
  async #judgeUnrecorded(session: Live, cursor: Cursor, input: CommandInput): Promise<boolean | null> {
    const { state } = session.actor;
    // What a host does to a session it repeats until it has happened: it is never garbage.
    if (session.n === 0 || isCrewVerb(input.verb) || recordsRejection(state.context)) return null;
    const checked = toWellFormed(await this.#check(session, input));
    const decision = decide(state, checked, this.#nowMs(checked));
    if (decision.kind !== 'rejected') return null;
    // A command that cannot be read is invalid in every state. Any other may be valid in a state that another host has made.
    if (!input.problem && !(await this.#isNewest(session))) return false;
    return this.#leaveUnrecorded(session, cursor, checked, decision.events[0], 'rejections');
  }

  /** @returns true: the command was judged. */
  #leaveUnrecorded(
    session: Live,
    { seq }: Cursor,
    input: CommandInput,
    rejected: EventOf<'command_rejected'>,
    reason: QuotaName | 'rejections',
  ): true {
    this.#unsettledReceipts.set(seq, () => session.receipts.rejectedUnrecorded(input, rejected));
    this.#ports.telemetry?.meters.add('coxswain_rejections_unrecorded_total', { reason });
    const { command_id, verb, code } = rejected;
    const level = this.#warnedOfRejections ? 'debug' : 'warn';
    this.#warnedOfRejections = true;
    this.#ports.log[level](
      { tenant: this.#ref.tenant, session_id: this.#ref.sessionId, command_id, verb, code, reason },
      'a command was rejected without a record',
    );
    return true;
  }

  #check(session: Live, input: CommandInput): Promise<CommandInput> {
    if (session.n === 0) return checkStart(this.#ports, this.#ref, input);
    return checkCommand({ actor: session.actor, transcript: transcriptOf(session) }, input, this.#ports.blobs);
  }

  // ---- one step ----

  /**
   * @param copiedAt when the record was made that this one copies.
   * @returns false where the input cannot be judged now: a command to an unknown session whose journal cannot be read.
   * @throws {SessionLeft}
   */
  async #step(session: Live, given: Input, cursor?: Cursor, copiedAt?: string): Promise<boolean> {
    // The one way into the journal: texts of models, tools, hooks and other sessions become well-formed here. The
    // record of a copy stays what it is in its origin.
    const input = copiedAt === undefined ? toWellFormed(given) : given;
    const n = session.n + 1;
    const at = copiedAt ?? new Date(this.#nowMs(input)).toISOString();
    const { decision, events } = session.actor.step(input, n, Date.parse(at));
    if (decision.kind === 'ignored') {
      this.#ports.log.debug(
        { session_id: this.#ref.sessionId, input: input.type, reason: decision.reason },
        'input ignored',
      );
      if (input.type === 'command' && decision.previously !== undefined)
        session.receipts.repeated(input, decision.previously);
      if (decision.deletes) await this.#delete(session, input as CommandInput, at);
      return true;
    }
    if (decision.kind === 'rejected' && session.n === 0)
      return this.#rejectUnrecorded(session, input as CommandInput, decision.events[0], cursor);
    const frame = {
      sessionId: this.#ref.sessionId,
      n,
      attempt: this.#options.host,
      prevHash: session.hash,
      at,
      cursor,
    };
    const record = buildRecord(frame, input, events, session.actor.state);
    const sealed = sealRecord(record);
    const fence = await this.#append(session, sealed);
    const { actor, transcript, receipts } = session;
    const after: Live = {
      actor,
      transcript,
      receipts,
      n,
      fence,
      hash: sealed.hash,
      at,
      cursor: cursor ?? session.cursor,
      writer: this.#options.host,
      copy: copyAfter(session.copy, { n, input }, this.#ref.sessionId),
    };
    this.#acknowledged(after, record);
    return true;
  }

  /** The time of a record of this input. A timer that has fired proves that the store's clock has reached its time. */
  #nowMs(input: Input): number {
    return Math.max(this.#ports.clock.nowMs(), input.type === 'timer' ? input.due_at_ms : 0);
  }

  /** @returns the record's fence. @throws {SessionLeft} */
  async #append(session: Live, sealed: SealedRecord): Promise<number> {
    const isLeft = () => this.#dropped;
    const bounds = this.#options.commitBounds ?? COMMIT_BOUNDS;
    const { telemetry, clock } = this.#ports;
    if (session.n === 0) this.#unsettled = sealed;
    this.#appending = true;
    const beganMs = telemetry ? clock.monotonicMs() : 0;
    const result = await appendRecord(this.#ports, this.#ref, sealed, session.fence, isLeft, bounds);
    const { status } = result;
    telemetry?.meters.observe('coxswain_append_seconds', { outcome: status }, (clock.monotonicMs() - beganMs) / 1_000);
    if (status === 'foreign' || status === 'deleted')
      telemetry?.meters.add('coxswain_fence_rejections_total', { by: status });
    if (session.n === 0 && status !== 'unavailable') this.#unsettled = null;
    this.#checkNotLeft();
    if (result.status === 'stored') {
      // That it can be owned says nothing of whether it can be read.
      if (session.transcript) this.#hasWritten = true;
      return result.fence;
    }
    if (result.status === 'unavailable') this.#drop('journal_unavailable', result.cause);
    else this.#dropOther(session.n + 1, result);
    throw new SessionLeft();
  }

  /** Ends the journal: from here on it says that the session is deleted, to whoever reads it and to whoever writes. */
  async #delete(session: Live, input: CommandInput, at: string): Promise<void> {
    const tombstone = tombstoneOf(this.#ref, session, { at, by: input.actor, reason: input.body.reason });
    await this.#append(session, tombstone.sealed);
    this.#dropDeleted(tombstone.sentence);
    const within = (await this.#ports.retention?.purgesWithin()) ?? null;
    session.receipts.deleted(input, session.n + 1, within);
  }

  /**
   * An unknown session gets no record, so no fence says whether it is unknown still: another host may have begun it since
   * this one looked. The journal is asked once more; the machine that took the rejection is thrown away in any case.
   * A first record that this host has sent may still be stored after the rejection, so it is sent again first: the fence decides.
   */
  async #rejectUnrecorded(
    unrecorded: Live,
    input: CommandInput,
    rejected: Extract<SessionEvent, { type: 'command_rejected' }>,
    cursor: Cursor | undefined,
  ): Promise<boolean> {
    if (this.#unsettled) await this.#append(unrecorded, this.#unsettled);
    const session = await this.#foldAgain();
    if (session.n > 0) {
      // It may have become an import, or an aborted fork.
      await this.#copy.complete(session);
      return this.#take(this.#session ?? session, input, cursor);
    }
    session.receipts.rejectedUnrecorded(input, rejected);
    return true;
  }

  /** Everything that others may see, and everything that is to be done, comes after the acknowledgement (R3, R4). */
  #acknowledged(session: Live, record: JournalRecord): void {
    const { input, events } = record;
    const { state } = session.actor;
    const before = this.#committedState;
    this.#session = session;
    this.#committedState = state;
    this.#appending = false;
    // All of them were taken before this command: the cursor has passed them.
    if (record.cursor) this.#sendReceipts(this.#unsettledReceipts.keys());
    if (record.n === 1) this.#ports.quotas?.noteStart(this.#ref.tenant);
    this.#notePending(pendingBytes(state.context));
    for (const event of events) session.transcript?.push(event);
    session.receipts.committed(input, events, session.n, isEnded(state));
    // What was under way in the origin at some record is nothing that is to be done here.
    if (!session.copy) {
      tellParent(this.#ports.publisher, this.#ref, state, session.n, events);
      this.#reconcile();
    }
    this.#observer.recorded(record, { before, after: state }, this.#taking);
    if (++this.#sinceSnapshot >= this.#options.snapshotEvery) void this.#snapshot(session);
  }

  #notePending(bytes: number): void {
    if (bytes === this.#notedPending) return;
    this.#notedPending = bytes;
    this.#ports.quotas?.notePending(this.#ref, bytes);
  }

  async #snapshot(session: Live): Promise<void> {
    this.#sinceSnapshot = 0;
    try {
      await this.#ports.snapshots.put(this.#ref, snapshotBytes(session), summaryOf(session.actor.state));
    } catch (error) {
      this.#ports.log.warn(
        { session_id: this.#ref.sessionId, error: (error as Error).message },
        'the snapshot was not stored; the journal is complete',
      );
    }
  }

  #view() {
    if (!this.#session) throw new Error('an effect without a session');
    return { state: this.#session.actor.state, transcript: transcriptOf(this.#session) };
  }

  // ---- trouble ----

  /** A host may leave the session at any time. @throws {SessionLeft} where it has. */
  #checkNotLeft(): void {
    if (this.#dropped) throw new SessionLeft();
  }

  #dropForeign(n: number, bytes: Uint8Array): void {
    this.#dropOther(n, foreignRecord(bytes));
  }

  #dropOther(n: number, other: ReturnType<typeof foreignRecord>): void {
    if (other.status === 'deleted') {
      this.#dropDeleted(other.message);
      return;
    }
    const { attempt } = other;
    const own = this.#options.isOwn(attempt);
    this.#drop(own ? 'late_append' : 'foreign_writer', `record ${n} was written by ${attempt}`);
  }

  #dropDeleted(message: string): void {
    this.#deleted = message;
    this.#drop('deleted', message);
  }

  /** An outcome that breaks the machine is replaced by a plain stop, once; where even that breaks it, no run can end here. */
  async #poison(outcome: Outcome, error: Error): Promise<void> {
    if (this.#poisoned.has(outcome.effect_id)) {
      this.#drop('unrecoverable', `the outcome of effect ${outcome.effect_id} cannot be recorded: ${error.message}`);
      return;
    }
    this.#poisoned = new Set([...this.#poisoned, outcome.effect_id]);
    await this.#refold(error);
  }

  /** Throws away what the machine did beyond the journal. @throws {SessionLeft} */
  async #foldAgain(): Promise<Live> {
    this.#session = null;
    this.#appending = false;
    return this.#load();
  }

  /** An exception of ours: drop the machine, fold the journal again, and end the run as failed. */
  async #refold(error: Error): Promise<void> {
    if (this.#dropped) return;
    const code = 'code' in error && typeof error.code === 'string' ? error.code : 'session_failed';
    this.#ports.log.error(
      { session_id: this.#ref.sessionId, code, stack: error.stack },
      'the session failed; this host rebuilds its state from the journal',
    );
    const n = this.#session?.n ?? 0;
    const session = await this.#foldAgain();
    if (session.n === 0) return;
    try {
      await this.#own(session);
      const failure = { code, message: error.message };
      await this.#step(this.#session ?? session, { type: 'session_failed', error: failure, n });
      this.#reconcile();
      this.#effects.offerAgain(this.#poisoned);
    } catch (again) {
      if (again instanceof SessionLeft) throw again;
      this.#drop('unrecoverable', `${error.message}; ending the run failed, too: ${(again as Error).message}`);
    }
  }

  #drop(reason: DropReason, message: string): void {
    if (this.#dropped) return;
    this.#dropped = true;
    if (LOSES_FEEDBACK.has(reason)) this.#loseFeedback();
    // What is queued in a session that left memory is still here; in any other it is another host's, or gone.
    if (reason !== 'passivated') this.#notePending(0);
    this.#mailbox.close();
    for (const handled of this.#awaited) handled();
    this.#timers.close();
    this.#rules.close();
    const carried = { outcomes: this.#effects.close(), feedback: this.#feedback, unsettled: this.#unsettled };
    this.#left = this.#worker.dispose().then((notes) => {
      // What could not be closed is worth a line, no more.
      for (const note of notes) this.#ports.log.warn({ session_id: this.#ref.sessionId }, note);
    });
    this.#onDropped({ reason, message, carried, hasWritten: this.#hasWritten });
  }
}

function workOf(state: SessionState): WorkEffect[] {
  return effectsOf(state).filter((effect): effect is WorkEffect => effect.kind !== 'timer');
}

function quotaRejection(
  { command_id, verb }: CommandInput,
  { quota, message, retryAfterMs }: QuotaProblem,
): EventOf<'command_rejected'> {
  const detail = { quota, ...(retryAfterMs === undefined ? {} : { retry_after_ms: retryAfterMs }) };
  return { type: 'command_rejected', command_id, verb, code: 'quota_exceeded', message, detail };
}
