/**
 * Fills gaps in the deltas of one session: a reader receives a running answer densely, from its first character on.
 *
 * H1 A reader that joins in the middle of an answer, or misses a delta, asks the host for the text so far.
 * H2 Deltas after a gap wait until the gap is filled. Repeated deltas are dropped.
 * H3 Three requests without progress end the healing. The next delta after a gap starts it again. The record of the
 *    answer has the whole text.
 */
import { AnswerCursor, type AnswerPieces, type AnswerPlace, type Delta } from '@coxswain/protocol';

/** The maximum number of deltas that wait behind a gap. The oldest are dropped first: the host's text includes them. */
const HELD_MAX = 256;
const FAILURES_MAX = 3;

/** The host and the reader of a healer. */
export interface HealingSource {
  /**
   * Requests the text after a position; null: the whole answer.
   * Contract: does not reject; resolves to null if no host replies in time.
   */
  ask(from: AnswerPlace | null): Promise<AnswerPieces | null>;
  /** Receives the next delta of the dense sequence. Contract: returns at once. */
  deliver(delta: Delta): void;
}

/** Delivers the deltas of one session to one reader by the rules at the top of the file. */
export class AnswerHealer {
  readonly #source: HealingSource;
  readonly #cursor = new AnswerCursor();
  #held: Delta[] = [];
  #isHealing = false;
  #isAskedAgain = false;
  #isClosed = false;

  constructor(source: HealingSource) {
    this.#source = source;
  }

  /** Takes a delta in the order of arrival: it may be late, repeated or after a gap. */
  take(delta: Delta): void {
    if (this.#deliver(delta)) void this.#heal();
  }

  /** Requests the text so far. Call it when a reader joins and when its connection is restored. */
  join(): void {
    if (this.#isHealing) this.#isAskedAgain = true;
    else void this.#heal();
  }

  /** Marks an answer as recorded: its deltas are dropped. */
  ended(effectId: string): void {
    this.#cursor.end(effectId);
    this.#held = this.#held.filter(({ effect_id }) => effect_id !== effectId);
  }

  /** Stops delivering. */
  close(): void {
    this.#isClosed = true;
  }

  /** @returns whether the delta waits behind a gap. */
  #deliver(delta: Delta): boolean {
    const fit = this.#cursor.take(delta);
    if (fit === 'gap') {
      this.#held.push(delta);
      if (this.#held.length > HELD_MAX) this.#held.shift();
      return true;
    }
    if (fit !== 'seen' && !this.#isClosed) this.#source.deliver(fit);
    return false;
  }

  async #heal(): Promise<void> {
    if (this.#isHealing) return;
    this.#isHealing = true;
    for (let failures = 0; failures < FAILURES_MAX; ) {
      this.#isAskedAgain = false;
      const before = this.#cursor.place;
      const answer = await this.#source.ask(before);
      if (this.#isClosed) return;
      for (const piece of answer?.pieces ?? []) this.#deliver(piece);
      const held = this.#held;
      this.#held = [];
      for (const delta of held) this.#deliver(delta);
      const isWhole = this.#held.length === 0 && answer?.more !== true && !this.#isAskedAgain;
      // After joining, one request is enough: without a reply, the next host restarts the answer, with live deltas.
      if (isWhole) break;
      failures = before === this.#cursor.place ? failures + 1 : 0;
    }
    this.#held = [];
    this.#isHealing = false;
  }
}
