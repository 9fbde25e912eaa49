/**
 * Makes a fork: checks the request (`planFork` in plan-fork.ts), writes the records of the copy (`#copyRest`, with the inputs
 * of `copiedInputs` in copy-journal.ts), and takes ownership of the result (COPY-1 to COPY-3, copy-journal.ts). It also
 * takes ownership of the copy that an import under a new id has written.
 */
import type { CommandInput, CopyOrigin, Failure, Input, SessionRef } from '@coxswain/protocol';
import { sessionRef } from '@coxswain/protocol';
import type { InboxPlace } from '../runner/runner-ports.ts';
import { type SessionExit, SessionLeft } from '../runner/session-exit.ts';
import { type CopyPorts, copiedInputs } from './copy-journal.ts';
import { afterCopy } from './copy-state.ts';
import { type LiveSession, transcriptOf } from './load-session.ts';
import { OriginAwayError, OriginRecords } from './origin-records.ts';
import { planFork } from './plan-fork.ts';

/** The runner that makes a copy. */
export interface CopyingRunner {
  /** This host's id and generation, as the records of the copy hold them in `attempt`. */
  readonly host: string;
  readonly exit: SessionExit;
  /** The session as it is now, or null. */
  session(): LiveSession | null;
  /** Applies one input: see `SessionIntake.apply`. */
  apply(session: LiveSession, input: Input, place?: InboxPlace, copiedAt?: string): Promise<boolean>;
  /** Records the host's table of hooks, if it differs from the recorded one. @throws {SessionLeft} */
  recordHooks(session: LiveSession): Promise<void>;
  /** Loads the session again after a failure: see `SessionLifecycle.reloadOrLeave`. @throws {SessionLeft} */
  reloadOrLeave(): Promise<LiveSession>;
}

/** Makes or continues the copy of one fork, and takes ownership of a complete copy: of a fork, or of an import. */
export class SessionCopy {
  readonly #ports: CopyPorts & { readonly clock: { yield(): Promise<void> } };
  readonly #ref: SessionRef;
  readonly #runner: CopyingRunner;

  constructor(
    ports: CopyPorts & { readonly clock: { yield(): Promise<void> } },
    ref: SessionRef,
    runner: CopyingRunner,
  ) {
    this.#ports = ports;
    this.#ref = ref;
    this.#runner = runner;
  }

  /**
   * Checks a fork command and makes the copy, or rejects the command.
   * @returns false where the command cannot be judged at present.
   * @throws {SessionLeft}; the error of the first record, if nothing is recorded.
   */
  async fork(session: LiveSession, input: CommandInput, place: InboxPlace | undefined): Promise<boolean> {
    try {
      const origin = this.#originOf((input.body.fork as { readonly session: string }).session);
      const plan = await planFork(this.#ports, origin, input, () => this.#ports.clock.yield());
      this.#runner.exit.throwIfLeft();
      if ('problem' in plan)
        return await this.#runner.apply(session, { ...input, body: {}, problem: plan.problem }, place);
      await this.complete({ ...session, copy: plan }, place, origin);
      return true;
    } catch (error) {
      if (!(error instanceof OriginAwayError)) throw error;
      this.#runner.exit.leave('journal_unavailable', error.message);
      throw new SessionLeft();
    }
  }

  /**
   * Continues an unfinished copy and becomes its first owner. A copy that cannot be completed is owned with an error,
   * which fails its run. Does nothing where no copy is unfinished.
   * @param place the place of the fork command, for the first record.
   * @param known the origin, with the records that were read already.
   * @throws {SessionLeft}; the error of the first record, if nothing is recorded.
   */
  async complete(session: LiveSession, place?: InboxPlace, known?: OriginRecords): Promise<void> {
    const { copy } = session;
    const runner = this.#runner;
    if (!copy) return;
    const origin = known ?? this.#originOf(copy.session);
    const failure = session.n < copy.n ? await this.#copyRest(session, copy, origin, place) : null;
    runner.exit.throwIfLeft();
    const whole = failure ? await runner.reloadOrLeave() : runner.session();
    if (!whole) throw new SessionLeft();
    runner.exit.throwIfLeft();
    const after_copy = failure
      ? { session: this.#ref.sessionId, error: failure }
      : afterCopy(this.#ref.sessionId, copy, whole.actor.state);
    const epoch = whole.actor.state.context.epoch + 1;
    await runner.apply(whole, { type: 'owned', epoch, host: runner.host, after_copy });
    // The hook table may have changed since the copied records were made.
    await runner.recordHooks(runner.session() ?? whole);
  }

  #originOf(session: string): OriginRecords {
    return new OriginRecords(this.#ports.journal, sessionRef(session, this.#ref.tenant));
  }

  /**
   * Writes the missing records of the copy.
   * @returns the reason why the copy cannot be completed, or null where it is complete.
   * @throws {SessionLeft}; any other error, if nothing is recorded.
   */
  async #copyRest(
    session: LiveSession,
    copy: CopyOrigin,
    origin: OriginRecords,
    place: InboxPlace | undefined,
  ): Promise<Failure | null> {
    const runner = this.#runner;
    const now = () => runner.session() ?? session;
    try {
      const before = () => ({ state: now().actor.state, transcript: transcriptOf(now()) });
      for await (const { n, at, input } of copiedInputs(this.#ports.blobs, origin, copy, session.n, before)) {
        await runner.apply(now(), input, n === 1 ? place : undefined, at);
        if (now().n !== n)
          return { code: 'replay_diverged', message: `record ${n} of ${copy.session} was not applied` };
        // A long copy must not block the host's other sessions.
        await this.#ports.clock.yield();
        runner.exit.throwIfLeft();
      }
      return null;
    } catch (error) {
      if (error instanceof SessionLeft) throw error;
      const { code = 'session_failed', message } = error as Error & { code?: string };
      if (error instanceof OriginAwayError) runner.exit.leave('journal_unavailable', message);
      // Nothing is recorded yet. `SessionIntake.#take` rejects the command with the message of the error.
      else if (now().n === 0) throw error;
      return { code, message };
    }
  }
}
