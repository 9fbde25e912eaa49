/**
 * Sessions that wait to be taken up: each once, in their order, so many at a time. Were all of a dead host's taken up at
 * once, each would be as late as the last.
 */
import type { ActiveSession } from '@coxswain/ports';
import { subjects } from '@coxswain/protocol';
import { SIDE_BY_SIDE } from './load-turns.ts';

interface Waiting {
  session: ActiveSession;
  readonly done: Promise<void>;
  readonly settle: () => void;
}

/** See the top of the file. */
export class TakeUps {
  readonly #takeUp: (session: ActiveSession) => Promise<void>;
  readonly #waiting = new Map<string, Waiting>();
  #underWay = 0;

  /** @param takeUp takes one up. Contract: does not reject, and ends within a bound. */
  constructor(takeUp: (session: ActiveSession) => Promise<void>) {
    this.#takeUp = takeUp;
  }

  /** Takes a session up when its turn comes; one that waits already keeps its turn. Resolves when that is done. */
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

  /** Takes none of those up that wait still. */
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
