/**
 * Claims of sessions in their order, with bounded concurrency. If all sessions of a dead host were claimed at once,
 * each would be as late as the last.
 */
import type { ActiveSession } from '@coxswain/ports';
import { subjects } from '@coxswain/protocol';
import { SIDE_BY_SIDE } from './load-turns.ts';

interface Waiting {
  session: ActiveSession;
  readonly done: Promise<void>;
  readonly settle: () => void;
}

/** The queue of claims. */
export class TakeUps {
  readonly #takeUp: (session: ActiveSession) => Promise<void>;
  readonly #waiting = new Map<string, Waiting>();
  #underWay = 0;

  /** @param takeUp claims one session. Contract: does not reject, and ends within a bound. */
  constructor(takeUp: (session: ActiveSession) => Promise<void>) {
    this.#takeUp = takeUp;
  }

  /** Claims a session in its turn; a queued one keeps its place. Resolves when that is done. */
  add(session: ActiveSession): Promise<void> {
    const key = subjects.journal(session.ref);
    const known = this.#waiting.get(key);
    if (known) {
      known.session = session;
      return known.done;
    }
    let settle = () => {};
    const done = new Promise<void>((resolve) => {
      settle = resolve;
    });
    this.#waiting.set(key, { session, done, settle });
    if (this.#underWay < SIDE_BY_SIDE) void this.#work();
    return done;
  }

  /** Drops all queued claims. */
  clear(): void {
    for (const { settle } of this.#waiting.values()) settle();
    this.#waiting.clear();
  }

  async #work(): Promise<void> {
    this.#underWay++;
    for (const [key, { session, settle }] of this.#waiting) {
      this.#waiting.delete(key);
      await this.#takeUp(session);
      settle();
    }
    this.#underWay--;
  }
}
