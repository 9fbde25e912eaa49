/**
 * Deltas: the pieces of a model answer while it streams, and the progress of running calls. They are not stored; the
 * journal contains the whole answer.
 */
import * as z from 'zod';
import { cutText } from './unicode-text.ts';

/** `<record>-<index>`: the number of the record that requested the effect, and the effect's index in that record. */
const EffectId = z.string().regex(/^\d{1,15}-\d{1,9}$/);

/**
 * One piece of the output of a running effect. `effect_id`, `epoch` and `attempt` identify a model answer. A later
 * attempt replaces an earlier one, and its text starts again. `kind`: `call` is a call in the answer, `progress` a text
 * of a running call.
 */
export const Delta = z.strictObject({
  type: z.literal('message_update'),
  session_id: z.string(),
  effect_id: EffectId,
  /** Epoch of the session's owner. The next owner streams the answer again from its beginning. */
  epoch: z.number().int().positive(),
  /** Number of the attempt on this host, from 1. It rises when the model request is repeated. */
  attempt: z.number().int().positive(),
  turn: z.number().int().nonnegative(),
  /**
   * Dense per attempt, from 0; the progress of a child rises with gaps. A piece of {@link AnswerPieces} has the index
   * of the answer's newest delta with text or reasoning.
   */
  index: z.number().int().nonnegative(),
  kind: z.enum(['text', 'reasoning', 'call', 'progress']),
  /** Length of the answer's text, or of its reasoning, before this piece, UTF-16 units. 0 for calls and progress. */
  offset: z.number().int().nonnegative(),
  text: z.string(),
  call_id: z.string().optional(),
  tool: z.string().optional(),
});
export type Delta = z.infer<typeof Delta>;

/** The part of an answer that a reader has. The query `get_answer` returns the rest. Lengths are UTF-16 units. */
export const AnswerPlace = z.strictObject({
  effect_id: EffectId,
  epoch: z.number().int().positive(),
  attempt: z.number().int().positive(),
  text: z.number().int().nonnegative(),
  reasoning: z.number().int().nonnegative(),
});
export type AnswerPlace = z.infer<typeof AnswerPlace>;

/** Reply of a host to `get_answer`: the running answer from the requested place on. */
export const AnswerPieces = z.strictObject({
  /** At most one piece of reasoning and one of text; empty if the reader has everything, or no answer is running. */
  pieces: z.array(Delta).max(2),
  /** Whether the host already has more of the answer than these pieces: ask again. */
  more: z.boolean(),
});
export type AnswerPieces = z.infer<typeof AnswerPieces>;

/** Longest piece of one reply to `get_answer`, UTF-16 units. Two of them, escaped as JSON, fit in one bus message. */
const PIECE_MAX_CHARS = 48 * 1024;
/**
 * Buffer of a running answer for readers that join late, UTF-16 units of text and of reasoning each. The record has the
 * rest.
 */
const KEPT_MAX_CHARS = 1024 * 1024;

/** The position of one reader in the answers of a session. It turns deltas with repetitions into a dense stream. */
export class AnswerCursor {
  #place: AnswerPlace | null = null;
  #hasEnded = false;

  /**
   * The place in the running answer; null before the first text or reasoning, and after the record of the last answer.
   */
  get place(): AnswerPlace | null {
    return this.#hasEnded ? null : this.#place;
  }

  /**
   * Takes the next delta. A delta of a newer answer starts that answer at length 0.
   * @returns the part of the delta that is new; `seen` if nothing is new or the answer is older; `gap` if text before
   *   the delta is missing. Calls and progress are always new.
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

  /** Ends an answer: its record has arrived, so its deltas count as seen. Does nothing if a newer answer is running. */
  end(effectId: string): void {
    const ended = { effect_id: effectId, epoch: Number.MAX_SAFE_INTEGER, attempt: Number.MAX_SAFE_INTEGER };
    if (this.#place !== null && compareAnswers(ended, this.#place) < 0) return;
    this.#place = { ...ended, text: 0, reasoning: 0 };
    this.#hasEnded = true;
  }
}

/** The text of a session's newest answer so far, assembled from deltas. */
export class AnswerSoFar {
  readonly #cursor = new AnswerCursor();
  readonly #maxChars: number;
  #newest: Delta | null = null;
  #text = '';
  #reasoning = '';

  /** @param maxChars buffer for the text and for the reasoning, UTF-16 units each. */
  constructor(maxChars = KEPT_MAX_CHARS) {
    this.#maxChars = maxChars;
  }

  /**
   * The identity of the newest answer and the length of its text and reasoning; null as in {@link AnswerCursor.place}.
   */
  get place(): AnswerPlace | null {
    return this.#cursor.place;
  }

  get text(): string {
    return this.#text;
  }

  get reasoning(): string {
    return this.#reasoning;
  }

  /** The turn of the newest answer; 0 without one. */
  get turn(): number {
    return this.#newest?.turn ?? 0;
  }

  /** Takes the next delta, as {@link AnswerCursor.take} does, and adds its text up to the limit of the buffer. */
  take(delta: Delta): Delta | 'seen' | 'gap' {
    const before = this.#cursor.place;
    const fit = this.#cursor.take(delta);
    const { place } = this.#cursor;
    if (place !== null && (before === null || compareAnswers(place, before) !== 0)) {
      this.#text = '';
      this.#reasoning = '';
      this.#newest = delta;
    }
    if (typeof fit === 'string' || fit.kind === 'call' || fit.kind === 'progress') return fit;
    this.#newest = fit;
    if (fit.kind === 'text') this.#text = extended(this.#text, fit, this.#maxChars);
    else this.#reasoning = extended(this.#reasoning, fit, this.#maxChars);
    return fit;
  }

  /** Ends an answer: its record has arrived, so its pieces are dropped. Does nothing if a newer answer is running. */
  end(effectId: string): void {
    this.#cursor.end(effectId);
    if (this.#cursor.place !== null) return;
    this.#text = '';
    this.#reasoning = '';
    this.#newest = null;
  }

  /**
   * The pieces of the newest answer that a reader lacks.
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
  // Text after a truncated part would have the wrong offset.
  return offset > kept.length ? kept : cutText(kept + text, maxChars);
}

type AnswerIdentity = Pick<AnswerPlace, 'effect_id' | 'epoch' | 'attempt'>;

/** Negative if `one` is older, 0 for the same answer. */
function compareAnswers(one: AnswerIdentity, other: AnswerIdentity): number {
  const [record, index] = effectOrder(one.effect_id);
  const [otherRecord, otherIndex] = effectOrder(other.effect_id);
  return record - otherRecord || index - otherIndex || one.epoch - other.epoch || one.attempt - other.attempt;
}

function effectOrder(effectId: string): [number, number] {
  const [record = '', index = ''] = effectId.split('-');
  return [Number(record), Number(index)];
}
