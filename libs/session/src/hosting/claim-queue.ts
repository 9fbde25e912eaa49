/**
 * The queue of sessions to claim: each waiting session once, in order, with a bound on concurrent claims. If all
 * sessions of a dead host were claimed at once, each would be as late as the last. `Host.#wakeAfterBackOff` repeats failed claims,
 * outside this queue.
 */
import type { ActiveSession } from '@coxswain/ports';
import { subjects } from '@coxswain/protocol';
import { CONCURRENCY } from './load-limit.ts';

interface Waiting {
  session: ActiveSession;
  readonly done: Promise<void>;
  readonly settle: () => void;
}

/** Claims sessions in order, {@link CONCURRENCY} at a time. */
export class ClaimQueue {
  readonly #claim: (session: ActiveSession) => Promise<void>;
  readonly #waiting = new Map<string, Waiting>();
  #underWay = 0;

  /** @param claim claims one session. Contract: does not reject, and ends within a bound. */
  constructor(claim: (session: ActiveSession) => Promise<void>) {
    this.#claim = claim;
  }

  /**
   * Claims a session when the claims before it leave room. A session that is queued already keeps its place and gets the
   * newer note. Resolves when the claim has ended, or when the queue is emptied.
   */
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
    if (this.#underWay < CONCURRENCY) void this.#work();
    return done;
  }

  /** Empties the queue. Claims in progress continue. */
  clear(): void {
    for (const { settle } of this.#waiting.values()) settle();
    this.#waiting.clear();
  }

  async #work(): Promise<void> {
    this.#underWay++;
    for (const [key, { session, settle }] of this.#waiting) {
      this.#waiting.delete(key);
      await this.#claim(session);
      settle();
    }
    this.#underWay--;
  }
}
