import type { Session } from '@coxswain/client';
import { SessionDeletedError, sessionKey } from '@coxswain/protocol';
import { GATEWAY_BOUNDS } from './gateway-bounds.ts';
import { Problem } from './problem.ts';

/** Sessions that existed a moment ago: a client that steers one many times causes one look-up of its journal. */
export class KnownSessions {
  readonly #seen = new Map<string, number>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  /**
   * @throws Problem `session_not_found`; SessionDeletedError. What was deleted through another gateway within the last minute passes:
   * see {@link expectStillThere}.
   */
  async expect(session: Session): Promise<void> {
    const key = sessionKey(session.ref);
    const seen = this.#seen.get(key);
    if (seen !== undefined && this.#now() - seen < GATEWAY_BOUNDS.knownSessionMs) return;
    if ((await session.lastNumber()) === 0) throw noSuchSession(session.id);
    this.note(session);
  }

  /**
   * After a command is stored of which no host reports: one that was deleted meanwhile, or through another gateway, takes none. Whatever
   * keeps from looking changes nothing of what is stored.
   * @throws SessionDeletedError.
   */
  async expectStillThere(session: Session): Promise<void> {
    try {
      await session.lastNumber();
    } catch (error) {
      if (!(error instanceof SessionDeletedError)) return;
      this.forget(session);
      throw error;
    }
  }

  /** It is there no more. */
  forget({ ref }: Pick<Session, 'ref'>): void {
    this.#seen.delete(sessionKey(ref));
  }

  /** Whether it was there a moment ago, or is about to be. */
  has({ ref }: Pick<Session, 'ref'>): boolean {
    return this.#seen.has(sessionKey(ref));
  }

  /** It is there, or is about to be: its start is stored. */
  note({ ref }: Pick<Session, 'ref'>): void {
    const key = sessionKey(ref);
    this.#seen.delete(key);
    this.#seen.set(key, this.#now());
    if (this.#seen.size > GATEWAY_BOUNDS.knownSessionsMax) {
      const [oldest] = this.#seen.keys();
      if (oldest !== undefined) this.#seen.delete(oldest);
    }
  }
}

/** There is none of this id. Of another tenant's the same is said. */
export function noSuchSession(sessionId: string): Problem {
  return new Problem('session_not_found', `there is no session ${sessionId}`, { sessionId });
}
