import type { Session } from '@coxswain/client';
import { SessionDeletedError, sessionKey } from '@coxswain/protocol';
import { GATEWAY_BOUNDS } from './gateway-bounds.ts';
import { Problem } from './problem.ts';

/** A cache of sessions that existed a moment ago. It saves the look-up before each of several commands to a session. */
export class KnownSessions {
  readonly #seen = new Map<string, number>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  /**
   * Checks that the session exists.
   * @throws Problem `session_not_found` (404); SessionDeletedError. A session that another gateway deleted within the
   *   last minute passes: see {@link expectNotDeleted}.
   */
  async expect(session: Session): Promise<void> {
    const key = sessionKey(session.ref);
    const seen = this.#seen.get(key);
    if (seen !== undefined && this.#now() - seen < GATEWAY_BOUNDS.knownSessionMs) return;
    if ((await session.lastNumber()) === 0) throw sessionNotFoundProblem(session.id);
    this.remember(session);
  }

  /**
   * Checks again that the session exists, after a command was stored without a receipt. The session may have been
   * deleted meanwhile. Other errors are ignored: the command stays stored.
   * @throws SessionDeletedError.
   */
  async expectNotDeleted(session: Session): Promise<void> {
    try {
      await session.lastNumber();
    } catch (error) {
      if (!(error instanceof SessionDeletedError)) return;
      this.forget(session);
      throw error;
    }
  }

  /** Removes a deleted session. */
  forget({ ref }: Pick<Session, 'ref'>): void {
    this.#seen.delete(sessionKey(ref));
  }

  /** Whether the session existed a moment ago, or its start was stored. */
  has({ ref }: Pick<Session, 'ref'>): boolean {
    return this.#seen.has(sessionKey(ref));
  }

  /** Remembers that the session exists, or that its start was stored. */
  remember({ ref }: Pick<Session, 'ref'>): void {
    const key = sessionKey(ref);
    this.#seen.delete(key);
    this.#seen.set(key, this.#now());
    if (this.#seen.size > GATEWAY_BOUNDS.knownSessionsMax) {
      const [oldest] = this.#seen.keys();
      if (oldest !== undefined) this.#seen.delete(oldest);
    }
  }
}

/** The problem of an unknown session (404). It is the same for a session of another tenant. */
export function sessionNotFoundProblem(sessionId: string): Problem {
  return new Problem('session_not_found', `there is no session ${sessionId}`, { sessionId });
}
