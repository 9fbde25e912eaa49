/**
 * Feedback for the model that no record holds yet. It is kept until a record with it is acknowledged. Feedback beyond the
 * bound is only counted, and the next record of feedback holds the count. The machine queues recorded feedback for the
 * model: `decideFeedback` (libs/turn, feedback.ts).
 *
 * FEEDBACK-1  After an append without an answer, the journal shows whether it holds the offered feedback: by the number and
 *             the writer of the record for which it was offered. A writer offers feedback only once for one number.
 */
import type { Log } from '@coxswain/ports';
import { BOUNDS, cutText, type Feedback, type FeedbackInput, type JournalRecord } from '@coxswain/protocol';

/** The feedback of one session that no record holds yet. Bounded. */
export class FeedbackBuffer {
  #items: Feedback[] = [];
  #dropped: FeedbackInput['dropped'];
  #offered: { readonly n: number; readonly attempt: string; readonly input: FeedbackInput } | null = null;

  /** Adds one text, cut to its bound. If the buffer is full, the text is only counted. A blank text is ignored. */
  add(source: string, text: string): void {
    const body = boundedFeedback(String(text));
    if (body === '') return;
    const known = cutText(source, SOURCE_MAX_CHARS);
    if (this.#items.length < BOUNDS.feedbackPendingMax) this.#items.push({ source: known, body });
    else this.#dropped = { count: (this.#dropped?.count ?? 0) + 1, source: known };
  }

  /** Whether there is no feedback to record. */
  get isEmpty(): boolean {
    return this.#items.length === 0 && this.#dropped === undefined;
  }

  /**
   * The feedback as the input of record `n`. It stays here until it is {@link recorded}.
   * @param attempt the writer of that record, as in its member `attempt`.
   */
  offer(n: number, attempt: string): FeedbackInput {
    const input: FeedbackInput = {
      type: 'feedback',
      items: [...this.#items],
      ...(this.#dropped ? { dropped: { ...this.#dropped } } : {}),
    };
    this.#offered = { n, attempt, input };
    return input;
  }

  /** Removes the feedback that was offered last: the journal holds it. */
  recorded(): void {
    if (!this.#offered) return;
    const { items, dropped } = this.#offered.input;
    this.#offered = null;
    this.#items = this.#items.slice(items.length);
    const left = (this.#dropped?.count ?? 0) - (dropped?.count ?? 0);
    this.#dropped = this.#dropped && left > 0 ? { ...this.#dropped, count: left } : undefined;
  }

  /** Removes the offered feedback if this record of the journal holds it (FEEDBACK-1). */
  recall({ n, attempt, input }: Pick<JournalRecord, 'n' | 'attempt' | 'input'>): void {
    if (input.type === 'feedback' && this.#offered?.n === n && this.#offered.attempt === attempt) this.recorded();
  }

  /** Drops all feedback. */
  clear(): void {
    this.#items = [];
    this.#dropped = undefined;
    this.#offered = null;
  }
}

const SOURCE_MAX_CHARS = 256;
const CUT = ' [cut]';

/**
 * The trimmed text of one piece of feedback, cut if it is too long. It is measured as JSON, like the bound of a record: a
 * control character is one byte of text and six bytes of JSON.
 */
export function boundedFeedback(said: string): string {
  const text = said.trim();
  if (jsonBytes(text) <= BOUNDS.feedbackBodyMaxBytes) return text;
  // Each character takes at least one byte, so no longer text fits.
  let kept = cutText(text, BOUNDS.feedbackBodyMaxBytes);
  while (jsonBytes(kept + CUT) > BOUNDS.feedbackBodyMaxBytes) kept = cutText(kept, Math.floor(kept.length * 0.9));
  return kept + CUT;
}

function jsonBytes(text: string): number {
  return Buffer.byteLength(JSON.stringify(text), 'utf8') - 2;
}

/** Logs that a session's feedback is lost: no record holds it, and no buffer keeps it any longer. */
export function logLostFeedback(log: Log, sessionId: string): void {
  log.warn({ session_id: sessionId }, 'feedback for the model is lost: no record holds it');
}
