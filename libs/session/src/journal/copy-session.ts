/** Carries a copy out: looks at what a fork asks for, makes its records, and takes the whole of it over (Y1 to Y3). */
import type { CommandInput, CopyOrigin, Cursor, Failure, Input, SessionRef } from '@coxswain/protocol';
import { sessionRef } from '@coxswain/protocol';
import { type CopyPorts, copiedInputs } from './copy-journal.ts';
import { afterCopy } from './copy-state.ts';
import { type LiveSession, transcriptOf } from './load-session.ts';
import { OriginAwayError, OriginRecords } from './origin-records.ts';
import { planFork } from './plan-fork.ts';

/** What a copy needs of the runner that makes it. */
export interface CopyingRunner {
  /** Who writes: this host's incarnation. */
  readonly host: string;
  /** The session as it is now, or null. */
  session(): LiveSession | null;
  hasLeft(): boolean;
  /** Makes one record. @returns false where the session was left. */
  step(session: LiveSession, input: Input, cursor?: Cursor, copiedAt?: string): Promise<boolean>;
  /** Puts the host's table of hooks into the journal, if it is another one. @returns false where the session was left. */
  seeHooks(session: LiveSession): Promise<boolean>;
  /** Throws away what the machine did beyond the journal. */
  foldAgain(): Promise<LiveSession | null>;
  /** Leaves the session, because the origin cannot be read now. */
  leave(message: string): void;
}

/** See the top of the file. */
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

  /** Looks at what a fork asks for, and copies it. @returns false where the session was left. */
  async fork(session: LiveSession, input: CommandInput, cursor: Cursor | undefined): Promise<boolean> {
    try {
      const origin = this.#originOf((input.body.fork as { readonly session: string }).session);
      const plan = await planFork(this.#ports, origin, input, () => this.#ports.clock.yield());
      if (this.#runner.hasLeft()) return false;
      if ('problem' in plan)
        return await this.#runner.step(session, { ...input, body: {}, problem: plan.problem }, cursor);
      return await this.complete({ ...session, copy: plan }, cursor, origin);
    } catch (error) {
      if (!(error instanceof OriginAwayError)) throw error;
      this.#runner.leave(error.message);
      return false;
    }
  }

  /**
   * Goes on with a copy from where it stands, and takes it over as its first owner; nothing where none is under way.
   * @param cursor the place of the command that asked for it, for its first record.
   * @param known the origin, as far as it was read already.
   * @returns false where the session was left.
   */
  async complete(session: LiveSession, cursor?: Cursor, known?: OriginRecords): Promise<boolean> {
    const { copy } = session;
    const runner = this.#runner;
    if (!copy) return true;
    const origin = known ?? this.#originOf(copy.session);
    const failure = session.n < copy.n ? await this.#copyRest(session, copy, origin, cursor) : null;
    if (runner.hasLeft()) return false;
    const whole = failure ? await runner.foldAgain() : runner.session();
    if (!whole || runner.hasLeft()) return false;
    const after_copy = failure
      ? { session: this.#ref.sessionId, error: failure }
      : afterCopy(this.#ref.sessionId, copy, whole.actor.state);
    const epoch = whole.actor.state.context.epoch + 1;
    if (!(await runner.step(whole, { type: 'owned', epoch, host: runner.host, after_copy }))) return false;
    // What was registered when the copied records were made need not be now.
    return runner.seeHooks(runner.session() ?? whole);
  }

  #originOf(session: string): OriginRecords {
    return new OriginRecords(this.#ports.journal, sessionRef(session, this.#ref.tenant));
  }

  /** @returns why the copy cannot be completed, or null where it is whole or the session was left. */
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
        if (!(await runner.step(now(), input, n === 1 ? cursor : undefined, at))) return null;
        if (now().n !== n)
          return { code: 'replay_diverged', message: `record ${n} of ${copy.session} was not applied` };
        // A long copy must not keep the host's other sessions waiting.
        await this.#ports.clock.yield();
        if (runner.hasLeft()) return null;
      }
      return null;
    } catch (error) {
      const { code = 'session_failed', message } = error as Error & { code?: string };
      if (error instanceof OriginAwayError) runner.leave(message);
      // Nothing is recorded yet: what asked for it is answered like any command that cannot be.
      else if (now().n === 0) throw error;
      return { code, message };
    }
  }
}
