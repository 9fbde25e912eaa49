/** Deltas: a running answer as it streams. Ephemeral; the journal holds the whole answer. */
import * as z from 'zod';
import { cutText } from './unicode-text.ts';

/** `<record>-<index>`: the record that asked for the effect, and its place among the effects of that record. */
const EffectId = z.string().regex(/^\d{1,15}-\d{1,9}$/);

/**
 * One piece of a running effect's output. A model answer is identified by `effect_id`, `epoch` and `attempt`; each later
 * one of an effect replaces the earlier ones, and its text starts again.
 */
export const Delta = z.strictObject({
  type: z.literal('message_update'),
  session_id: z.string(),
  effect_id: EffectId,
  epoch: z.number().int().positive(),
  /** How often this host has started the answer, from 1: a provider error restarts it. */
  attempt: z.number().int().positive(),
  turn: z.number().int().nonnegative(),
  /** Dense per attempt, from 0. A piece that repeats text has the index of the newest delta that it includes. */
  index: z.number().int().nonnegative(),
  kind: z.enum(['text', 'reasoning', 'call', 'progress']),
  /** UTF-16 units of the answer's text, or of its reasoning, that precede this piece. 0 for a call and for progress. */
  offset: z.number().int().nonnegative(),
  text: z.string(),
  call_id: z.string().optional(),
  tool: z.string().optional(),
});
/** See {@link Delta}. */
export type Delta = z.infer<typeof Delta>;

/** How much of an answer a reader has: the query `get_answer` asks for what follows. Lengths are UTF-16 units. */
export const AnswerPlace = z.strictObject({
  effect_id: EffectId,
  epoch: z.number().int().positive(),
  attempt: z.number().int().positive(),
  text: z.number().int().nonnegative(),
  reasoning: z.number().int().nonnegative(),
});
/** See {@link AnswerPlace}. */
export type AnswerPlace = z.infer<typeof AnswerPlace>;

/** What a host replies to `get_answer`: what follows the place that was asked for, of the newest answer. */
export const AnswerPieces = z.strictObject({
  /** One piece of reasoning and one of text at most; none where nothing follows. */
  pieces: z.array(Delta).max(2),
  /** Whether the answer is longer than these pieces. */
  more: z.boolean(),
});
/** See {@link AnswerPieces}. */
export type AnswerPieces = z.infer<typeof AnswerPieces>;

/** The longest piece of one reply to `get_answer`, UTF-16 units: two of them, escaped as JSON, fit in one message of a bus. */
const PIECE_MAX_CHARS = 48 * 1024;
/** What is kept of a running answer for readers that join, UTF-16 units of each kind. They get the rest from its record. */
const KEPT_MAX_CHARS = 1024 * 1024;

/** The place of one reader in the answers of a session: it makes a dense stream of deltas that repeat, or are old. */
export class AnswerCursor {
  #place: AnswerPlace | null = null;
  #hasEnded = false;

  /** Where the reader is in the answer that runs; null before the first delta, and after the record of the last. */
  get place(): AnswerPlace | null {
    return this.#hasEnded ? null : this.#place;
  }

  /**
   * Takes the next delta. A delta of a newer answer starts that answer at length 0.
   * @returns what is new of it; `seen` where nothing is; `gap` where text before it is missing.
   */
  take(delta: Delta): Delta | 'seen' | 'gap' {
    const { kind, offset, text } = delta;
    if (kind === 'call' || kind === 'progress') return delta;
    const order = this.#place === null ? 1 : compareAnswers(delta, this.#place);
    if (order < 0) return 'seen';
    if (order > 0 || this.#place === null) {
      const { effect_id, epoch, attempt } = delta;
      this.#place = { effect_id, epoch, attempt, text: 0, reasoning: 0 };
      this.#hasEnded = false;
    }
    const known = this.#place[kind];
    if (offset > known) return 'gap';
    if (offset + text.length <= known) return 'seen';
    this.#place = { ...this.#place, [kind]: offset + text.length };
    return offset === known ? delta : { ...delta, offset: known, text: text.slice(known - offset) };
  }

  /** The record of an answer has come: all of its deltas have been seen. */
  end(effectId: string): void {
    const ended = { effect_id: effectId, epoch: Number.MAX_SAFE_INTEGER, attempt: Number.MAX_SAFE_INTEGER };
    if (this.#place !== null && compareAnswers(ended, this.#place) < 0) return;
    this.#place = { ...ended, text: 0, reasoning: 0 };
    this.#hasEnded = true;
  }
}

/** The text so far of a session's newest answer, put together from its deltas. */
export class AnswerSoFar {
  readonly #cursor = new AnswerCursor();
  readonly #maxChars: number;
  #newest: Delta | null = null;
  #text = '';
  #reasoning = '';

  /** @param maxChars what is kept of the text and of the reasoning, UTF-16 units each. */
  constructor(maxChars = KEPT_MAX_CHARS) {
    this.#maxChars = maxChars;
  }

  /** The identity of the newest answer and the length of its text and reasoning; null before the first delta. */
  get place(): AnswerPlace | null {
    return this.#cursor.place;
  }

  get text(): string {
    return this.#text;
  }

  get reasoning(): string {
    return this.#reasoning;
  }

  /** The turn of the newest answer. */
  get turn(): number {
    return this.#newest?.turn ?? 0;
  }

  /** Takes the next delta, as {@link AnswerCursor.take} does. */
  take(delta: Delta): Delta | 'seen' | 'gap' {
    const before = this.#cursor.place;
    const fit = this.#cursor.take(delta);
    const { place } = this.#cursor;
    if (place !== null && (before === null || compareAnswers(place, before) !== 0)) {
      this.#text = '';
      this.#reasoning = '';
    }
    if (typeof fit === 'string' || fit.kind === 'call' || fit.kind === 'progress') return fit;
    this.#newest = fit;
    if (fit.kind === 'text') this.#text = extended(this.#text, fit, this.#maxChars);
    else this.#reasoning = extended(this.#reasoning, fit, this.#maxChars);
    return fit;
  }

  /** The record of an answer has come: nothing of it is offered any longer. */
  end(effectId: string): void {
    this.#cursor.end(effectId);
    if (this.#cursor.place !== null) return;
    this.#text = '';
    this.#reasoning = '';
    this.#newest = null;
  }

  /**
   * What a reader lacks of the newest answer.
   * @param from the reader's place; null, or a place in another answer, for all of it.
   * @param maxChars the longest piece, UTF-16 units.
   */
  after(from: AnswerPlace | null, maxChars = PIECE_MAX_CHARS): AnswerPieces {
    const newest = this.#newest;
    const { place } = this.#cursor;
    if (newest === null || place === null) return { pieces: [], more: false };
    const known = from !== null && compareAnswers(from, place) === 0 ? from : { text: 0, reasoning: 0 };
    const pieces: Delta[] = [];
    let more = false;
    for (const kind of ['reasoning', 'text'] as const) {
      const whole = kind === 'text' ? this.#text : this.#reasoning;
      const offset = known[kind];
      if (offset >= whole.length) continue;
      const text = cutText(whole.slice(offset), maxChars);
      more ||= offset + text.length < whole.length;
      pieces.push({ ...newest, kind, offset, text });
    }
    return { pieces, more };
  }
}

function extended(kept: string, { offset, text }: Delta, maxChars: number): string {
  // What follows a cut has no place in the text that is kept.
  return offset > kept.length ? kept : cutText(kept + text, maxChars);
}

type AnswerIdentity = Pick<AnswerPlace, 'effect_id' | 'epoch' | 'attempt'>;

/** Negative where `one` is older, 0 for the same answer. */
function compareAnswers(one: AnswerIdentity, other: AnswerIdentity): number {
  const [record, index] = effectOrder(one.effect_id);
  const [otherRecord, otherIndex] = effectOrder(other.effect_id);
  return record - otherRecord || index - otherIndex || one.epoch - other.epoch || one.attempt - other.attempt;
}

function effectOrder(effectId: string): [number, number] {
  const [record = '', index = ''] = effectId.split('-');
  return [Number(record), Number(index)];
}
