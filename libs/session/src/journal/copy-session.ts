/** Makes a fork: checks the request, writes the records of the copy, and owns the result (COPY-1 to COPY-3). */
import type { CommandInput, CopyOrigin, Cursor, Failure, Input, SessionRef } from '@coxswain/protocol';
import { sessionRef } from '@coxswain/protocol';
import { SessionLeft } from '../runner/append-record.ts';
import { type CopyPorts, copiedInputs } from './copy-journal.ts';
import { afterCopy } from './copy-state.ts';
import { type LiveSession, transcriptOf } from './load-session.ts';
import { OriginAwayError, OriginRecords } from './origin-records.ts';
import { planFork } from './plan-fork.ts';

/** What a copy needs from its runner. */
export interface CopyingRunner {
  /** The incarnation of this host, which is in each record. */
  readonly host: string;
  /** The current session, or null. */
  session(): LiveSession | null;
  /** @throws {SessionLeft} where the runner has left the session. */
  checkNotLeft(): void;
  /** Makes one record. @returns false where the input cannot be judged at present. @throws {SessionLeft} */
  step(session: LiveSession, input: Input, cursor?: Cursor, copiedAt?: string): Promise<boolean>;
  /** Records the host's hook table if it differs from the journal's. @throws {SessionLeft} */
  seeHooks(session: LiveSession): Promise<void>;
  /** Discards the machine's state beyond the journal and loads the session again. @throws {SessionLeft} */
  foldAgain(): Promise<LiveSession>;
  /** Leaves the session, because the origin cannot be read at present. */
  leave(message: string): void;
}

/** Makes the copy of one fork. */
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
   * Checks a fork command and makes the copy.
   * @returns false where the command cannot be judged at present.
   * @throws {SessionLeft}
   */
  async fork(session: LiveSession, input: CommandInput, cursor: Cursor | undefined): Promise<boolean> {
    try {
      const origin = this.#originOf((input.body.fork as { readonly session: string }).session);
      const plan = await planFork(this.#ports, origin, input, () => this.#ports.clock.yield());
      this.#runner.checkNotLeft();
      if ('problem' in plan)
        return await this.#runner.step(session, { ...input, body: {}, problem: plan.problem }, cursor);
      await this.complete({ ...session, copy: plan }, cursor, origin);
      return true;
    } catch (error) {
      if (!(error instanceof OriginAwayError)) throw error;
      this.#runner.leave(error.message);
      throw new SessionLeft();
    }
  }

  /**
   * Continues an unfinished copy and becomes its first owner. Does nothing where no copy is unfinished.
   * @param cursor the position of the fork command, for the first record.
   * @param known the part of the origin that was read already.
   * @throws {SessionLeft}
   */
  async complete(session: LiveSession, cursor?: Cursor, known?: OriginRecords): Promise<void> {
    const { copy } = session;
    const runner = this.#runner;
    if (!copy) return;
    const origin = known ?? this.#originOf(copy.session);
    const failure = session.n < copy.n ? await this.#copyRest(session, copy, origin, cursor) : null;
    runner.checkNotLeft();
    const whole = failure ? await runner.foldAgain() : runner.session();
    if (!whole) throw new SessionLeft();
    runner.checkNotLeft();
    const after_copy = failure
      ? { session: this.#ref.sessionId, error: failure }
      : afterCopy(this.#ref.sessionId, copy, whole.actor.state);
    const epoch = whole.actor.state.context.epoch + 1;
    await runner.step(whole, { type: 'owned', epoch, host: runner.host, after_copy });
    // The hook table may have changed since the copied records were made.
    await runner.seeHooks(runner.session() ?? whole);
  }

  #originOf(session: string): OriginRecords {
    return new OriginRecords(this.#ports.journal, sessionRef(session, this.#ref.tenant));
  }

  /** @returns the reason why the copy cannot be completed, or null where it is complete. @throws {SessionLeft} */
  async #copyRest(
    session: LiveSession,
    copy: CopyOrigin,
    origin: OriginRecords,
    cursor: Cursor | undefined,
  ): Promise<Failure | null> {
    const runner = this.#runner;
    const now = () => runner.session() ?? session;
    try {
      const before = () => ({ state: now().actor.state, transcript: transcriptOf(now()) });
      for await (const { n, at, input } of copiedInputs(this.#ports.blobs, origin, copy, session.n, before)) {
        await runner.step(now(), input, n === 1 ? cursor : undefined, at);
        if (now().n !== n)
          return { code: 'replay_diverged', message: `record ${n} of ${copy.session} was not applied` };
        // A long copy must not block the host's other sessions.
        await this.#ports.clock.yield();
        runner.checkNotLeft();
      }
      return null;
    } catch (error) {
      if (error instanceof SessionLeft) throw error;
      const { code = 'session_failed', message } = error as Error & { code?: string };
      if (error instanceof OriginAwayError) runner.leave(message);
      // Nothing is recorded yet, so the command is rejected like any other invalid command.
      else if (now().n === 0) throw error;
      return { code, message };
    }
  }
}
