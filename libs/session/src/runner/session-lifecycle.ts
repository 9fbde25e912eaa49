/**
 * The life of a session on its host: load it from the journal, own it before its first record here, and load it again after
 * a failure. {@link SessionExit} ends it. Whether a claim ends a run: `decideOwned` (libs/turn, owners.ts).
 */
import type { StoredRecord } from '@coxswain/ports';
import { type ErrorCode, isOfPersona, type Outcome, type SessionRef } from '@coxswain/protocol';
import { isEnded } from '@coxswain/turn';
import { buildHookTable } from '../effects/hook-table.ts';
import { conflictOf } from '../journal/append-record.ts';
import { ImportUnfinishedError, isUnfinishedImport } from '../journal/copy-state.ts';
import { type LiveSession as Live, type LoadedSession, loadSession, readTranscript } from '../journal/load-session.ts';
import type { FeedbackIntake } from './feedback-intake.ts';
import type { InboxReader } from './inbox-reader.ts';
import type { JournalWriter } from './journal-writer.ts';
import type { RunnerOptions, RunnerPorts } from './runner-ports.ts';
import { type SessionExit, SessionLeft } from './session-exit.ts';
import { type SessionWork, workOf } from './session-work.ts';

/**
 * Codes of a journal that is damaged, incomplete, deleted, of another release, or that the machine does not accept, as opposed
 * to one that cannot be read now.
 */
export const JOURNAL_CODES: ReadonlySet<string> = new Set<ErrorCode>([
  'record_unreadable',
  'chain_broken',
  'blob_missing',
  'machine_version_unknown',
  'event_not_accepted',
  'replay_diverged',
  'import_unfinished',
  'session_deleted',
]);

const NONE: ReadonlySet<string> = new Set();

/** The parts of a runner that its lifecycle uses. */
export interface LifecycleParts {
  readonly exit: SessionExit;
  readonly writer: JournalWriter;
  readonly work: SessionWork;
  readonly inbox: InboxReader;
  readonly feedback: FeedbackIntake;
}

/** The lifecycle of one session on its host. */
export class SessionLifecycle {
  readonly #ports: RunnerPorts;
  readonly #ref: SessionRef;
  readonly #options: RunnerOptions;
  readonly #exit: SessionExit;
  readonly #writer: JournalWriter;
  readonly #work: SessionWork;
  readonly #inbox: InboxReader;
  readonly #feedback: FeedbackIntake;
  /** Whether the host's table of hooks may differ from the table in the journal. */
  #hooksMayDiffer = true;
  /** Ids of effects whose outcomes broke the machine once. */
  #poisoned: ReadonlySet<string> = NONE;

  constructor(ports: RunnerPorts, ref: SessionRef, options: RunnerOptions, parts: LifecycleParts) {
    this.#ports = ports;
    this.#ref = ref;
    this.#options = options;
    this.#exit = parts.exit;
    this.#writer = parts.writer;
    this.#work = parts.work;
    this.#inbox = parts.inbox;
    this.#feedback = parts.feedback;
  }

  // ---- open ----

  /**
   * Loads the session, as soon as the host's bound on loads allows it ({@link RunnerOptions.loads}).
   * @param whole whether to load the transcript too. Without it the session can be owned, but {@link readTranscript} must come
   *   before its effects and commands.
   * @param newest the fence of the newest record, if the caller has just read it.
   * @throws {SessionLeft}
   */
  load(whole = true, newest?: number): Promise<Live> {
    return this.#options.loads.take(() => this.#loadNow(whole, newest));
  }

  async #loadNow(whole: boolean, newest: number | undefined): Promise<Live> {
    this.#exit.throwIfLeft();
    try {
      // The load and the host's note at the same time, so that a session that wakes waits only for the slower one.
      const [loaded] = await Promise.all([
        loadSession(this.#ports, this.#ref, whole, this.#feedback.recall, newest),
        this.#options.storeNote(),
      ]);
      this.#exit.throwIfLeft();
      if (isUnfinishedImport(loaded)) throw new ImportUnfinishedError(this.#ref.sessionId, loaded.n);
      const live = this.#writer.open(loaded);
      this.#settleCarried(loaded);
      return live;
    } catch (error) {
      await this.#leaveUnloaded(error as Error);
      throw new SessionLeft();
    }
  }

  /** Reads the transcript, unless it is loaded. @throws {SessionLeft} */
  async readTranscript(): Promise<void> {
    if (this.#writer.session?.transcript) return this.#exit.throwIfLeft();
    return this.#options.transcripts.take(async () => {
      const { session } = this.#writer;
      if (!session) throw new SessionLeft();
      this.#exit.throwIfLeft();
      try {
        const transcript = await readTranscript(this.#ports, this.#ref, session, this.#feedback.recall);
        this.#writer.addTranscript(session, transcript);
      } catch (error) {
        await this.#leaveUnloaded(error as Error);
      }
      this.#exit.throwIfLeft();
    });
  }

  /**
   * Leaves a session that cannot be loaded: as `load_failed` if the host shall try again (`Host.#wakeAfterBackOff`), otherwise as
   * `journal_invalid` or `deleted`, after its notified commands were rejected.
   * @throws {SessionLeft} if that is the error.
   */
  async #leaveUnloaded(error: Error & { readonly code?: ErrorCode }): Promise<void> {
    if (error instanceof SessionLeft) throw error;
    const { code, message } = error;
    if (code === undefined || !JOURNAL_CODES.has(code)) return this.#exit.leave('load_failed', message);
    await this.#inbox.refuse(this.#ports.publisher, code, message);
    this.#exit.leave(code === 'session_deleted' ? 'deleted' : 'journal_invalid', message);
  }

  /**
   * Decides about the feedback and outcomes that the session's last runner on this host has left. The feedback is
   * queued for a record, and the outcomes wait for their effects. If another host wrote the newest record, the feedback
   * is lost, and outcomes without an open effect are dropped as late.
   */
  #settleCarried(loaded: LoadedSession): void {
    if (loaded.n === 0 || this.#options.isOwnRecord(loaded.writer)) {
      this.#feedback.post();
      return;
    }
    this.#feedback.lose();
    this.#work.effects.dropLate(workOf(loaded.actor.state));
  }

  // ---- own ----

  /**
   * Owns the session: appends `owned` with the next epoch, unless the newest record names this host and its generation
   * (RUNNER-10, session-runner.ts). In both cases it then records a changed table of hooks. For a session without records it
   * does nothing.
   * @throws {SessionLeft}
   */
  async takeOwnership(session: Live): Promise<void> {
    if (session.n === 0) return;
    if (session.writer === this.#options.host) return this.recordHooks(session);
    const epoch = session.actor.state.context.epoch + 1;
    await this.#writer.apply(session, { type: 'owned', epoch, host: this.#options.host });
    return this.recordHooks(this.#writer.session ?? session);
  }

  /** The host's table of hooks has changed. */
  hooksChanged(): void {
    this.#hooksMayDiffer = true;
  }

  /**
   * Records the host's table of hooks, if a run is active and the table differs from the recorded one. An invalid table is
   * only logged.
   * @throws {SessionLeft}
   */
  async recordHooks(session: Live): Promise<void> {
    const { state } = session.actor;
    if (!this.#hooksMayDiffer || isEnded(state) || !state.context.run_started) return;
    this.#hooksMayDiffer = false;
    const seen = buildHookTable(this.#ports.hooks, this.#ref.tenant, state.context.hooks.filter(isOfPersona));
    if ('code' in seen) {
      this.#ports.log.error({ session_id: this.#ref.sessionId, code: seen.code }, seen.message);
      return;
    }
    if (seen.fingerprint === state.context.pinned?.hooks_fingerprint) return;
    await this.#writer.apply(session, { type: 'hooks_changed', ...seen });
  }

  /**
   * The outcome of a provision with the host's table of hooks as it is now. Provisioning read the table at its start. With
   * that one, a hand-off would undo a recorded change of the table. Other outcomes, and the outcome while the table is
   * invalid, stay as they are.
   */
  withNewestHooks(outcome: Outcome): Outcome {
    if (outcome.type !== 'provision_outcome' || outcome.status !== 'ok') return outcome;
    const { provision } = outcome;
    const seen = buildHookTable(this.#ports.hooks, this.#ref.tenant, provision.hooks.filter(isOfPersona));
    if ('code' in seen) return outcome;
    const fingerprints = { ...provision.fingerprints, hooks: seen.fingerprint };
    return { ...outcome, provision: { ...provision, hooks: seen.table, fingerprints } };
  }

  /**
   * Confirms that the loaded session has the newest record of its journal; otherwise the runner leaves the session. Call it
   * before a decision that leaves no record: no fence checks such a decision, and another host may have appended since.
   * @returns false where the journal cannot be read now.
   * @throws {SessionLeft} where the journal has a later record or a tombstone.
   */
  async confirmNewest(session: Live): Promise<boolean> {
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
    this.#exit.throwIfLeft();
    if (later === null) return true;
    this.#exit.leaveByConflict(session.n + 1, conflictOf(later.bytes));
    throw new SessionLeft();
  }

  // ---- reload after a failure ----

  /**
   * Discards the machine, and loads the session again. The journal may have records of another owner.
   * @throws {SessionLeft}
   */
  async reloadFromJournal(): Promise<Live> {
    this.#writer.discard();
    return this.load();
  }

  /**
   * Loads the session again after a failure. If the journal has a record that this runner does not know, leaves the
   * session: the open effects may be another owner's (RUNNER-10, session-runner.ts).
   * @throws {SessionLeft}
   */
  async reloadOrLeave(): Promise<Live> {
    const known = this.#writer.session?.n ?? 0;
    const session = await this.reloadFromJournal();
    if (session.n > known) {
      this.#exit.leaveByConflict(session.n, { status: 'foreign', attempt: session.writer });
      throw new SessionLeft();
    }
    return session;
  }

  /**
   * After an exception: loads the session again, and ends its run as failed, if one is active. If that causes an
   * exception too, leaves the session. A session without records has no run to end. Last, offers kept outcomes again
   * (RUNNER-9, session-runner.ts).
   * @throws {SessionLeft} also if that is the error.
   */
  async failRunAfterError(error: Error): Promise<void> {
    if (error instanceof SessionLeft) throw error;
    if (this.#exit.hasLeft) return;
    const code = 'code' in error && typeof error.code === 'string' ? error.code : 'session_failed';
    this.#ports.log.error(
      { session_id: this.#ref.sessionId, code, stack: error.stack },
      'the session failed; this host rebuilds its state from the journal',
    );
    const n = this.#writer.session?.n ?? 0;
    const session = await this.reloadOrLeave();
    if (session.n === 0) return;
    try {
      await this.takeOwnership(session);
      const failure = { code, message: error.message };
      await this.#writer.apply(this.#writer.session ?? session, { type: 'session_failed', error: failure, n });
      this.#writer.reconcile();
      this.#work.effects.offerAgain(this.#poisoned);
    } catch (again) {
      if (again instanceof SessionLeft) throw again;
      this.#exit.leave('unrecoverable', `${error.message}; ending the run failed, too: ${(again as Error).message}`);
    }
  }

  /**
   * After an outcome that breaks the machine: ends the run as failed ({@link failRunAfterError}). An outcome that says that the
   * effect was stopped replaces the one that broke it. If the replacement breaks the machine as well, the run cannot
   * end here, and the runner leaves the session.
   * @throws {SessionLeft} also if that is the error.
   */
  async failRunAfterOutcome(outcome: Outcome, error: Error): Promise<void> {
    if (error instanceof SessionLeft) throw error;
    if (this.#poisoned.has(outcome.effect_id)) {
      this.#exit.leave(
        'unrecoverable',
        `the outcome of effect ${outcome.effect_id} cannot be recorded: ${error.message}`,
      );
      return;
    }
    this.#poisoned = new Set([...this.#poisoned, outcome.effect_id]);
    await this.failRunAfterError(error);
  }
}
