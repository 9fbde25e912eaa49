/**
 * Heals the deltas of one session: what a reader gets of a running answer is dense, from its first character on.
 *
 * H1 A reader that joins in the middle of an answer, or misses a delta, asks the host for the text so far.
 * H2 Deltas behind a gap wait until the gap is filled; deltas that repeat are dropped.
 * H3 Three replies without progress end the healing. The next delta starts it again; the record of the answer has the whole text.
 */
import { AnswerCursor, type AnswerPieces, type AnswerPlace, type Delta } from '@coxswain/protocol';

/** Deltas that wait behind a gap. Of more, the oldest are dropped: the host has them in its text so far. */
const HELD_MAX = 256;
const FAILURES_MAX = 3;

/** What healing needs. */
export interface HealingSource {
  /**
   * Asks the host for what follows a place; null for the whole answer.
   * Contract: does not reject; null where no host replies in time.
   */
  ask(from: AnswerPlace | null): Promise<AnswerPieces | null>;
  /** Takes the next delta of the dense sequence. Returns at once. */
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

  /** Takes the next delta as it arrived: late, repeated, or after lost ones. */
  take(delta: Delta): void {
    if (this.#deliver(delta)) void this.#heal();
  }

  /** Asks for the text so far: when a reader joins, and when its connection is back. */
  join(): void {
    if (this.#isHealing) this.#isAskedAgain = true;
    else void this.#heal();
  }

  /** The record of an answer has come. */
  ended(effectId: string): void {
    this.#cursor.end(effectId);
    this.#held = this.#held.filter(({ effect_id }) => effect_id !== effectId);
  }

  /** Delivers nothing more. */
  close(): void {
    this.#isClosed = true;
  }

  /** @returns whether it waits behind a gap. */
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
      // A reader that joins asks once: without a host that replies, the answer starts again and its deltas come live.
      if (isWhole) break;
      failures = before === this.#cursor.place ? failures + 1 : 0;
    }
    this.#held = [];
    this.#isHealing = false;
  }
}
