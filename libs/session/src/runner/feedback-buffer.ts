/**
 * Inbox feedback before it is recorded. It is kept here until its record is acknowledged. Dropped pieces are counted,
 * and the next record of feedback contains the count.
 *
 * FEEDBACK-1  If an append has no answer, the journal shows whether it contains the offered feedback: a record has one
 *     number and one writer, and a writer offers one input for each record number.
 */
import type { Log } from '@coxswain/ports';
import { BOUNDS, cutText, type Feedback, type FeedbackInput, type JournalRecord } from '@coxswain/protocol';

/** The unrecorded feedback of one session. Bounded. */
export class FeedbackBuffer {
  #items: Feedback[] = [];
  #dropped: FeedbackInput['dropped'];
  #offered: { readonly n: number; readonly attempt: string; readonly input: FeedbackInput } | null = null;

  /** Adds one piece; an empty one is ignored. */
  add(source: string, text: string): void {
    const body = boundedFeedback(String(text));
    if (body === '') return;
    const known = cutText(source, SOURCE_MAX_CHARS);
    if (this.#items.length < BOUNDS.feedbackPendingMax) this.#items.push({ source: known, body });
    else this.#dropped = { count: (this.#dropped?.count ?? 0) + 1, source: known };
  }

  /** Whether there is no unrecorded feedback. */
  get isEmpty(): boolean {
    return this.#items.length === 0 && this.#dropped === undefined;
  }

  /** The unrecorded feedback as the input of a record. It stays here until it is {@link recorded}. */
  offer(n: number, attempt: string): FeedbackInput {
    const input: FeedbackInput = {
      type: 'feedback',
      items: [...this.#items],
      ...(this.#dropped ? { dropped: { ...this.#dropped } } : {}),
    };
    this.#offered = { n, attempt, input };
    return input;
  }

  /** Removes the last offered feedback: it is recorded. */
  recorded(): void {
    if (!this.#offered) return;
    const { items, dropped } = this.#offered.input;
    this.#offered = null;
    this.#items = this.#items.slice(items.length);
    const left = (this.#dropped?.count ?? 0) - (dropped?.count ?? 0);
    this.#dropped = this.#dropped && left > 0 ? { ...this.#dropped, count: left } : undefined;
  }

  /** Reads a record of the session: it may contain the offered feedback (FEEDBACK-1). */
  recall({ n, attempt, input }: Pick<JournalRecord, 'n' | 'attempt' | 'input'>): void {
    if (input.type === 'feedback' && this.#offered?.n === n && this.#offered.attempt === attempt) this.recorded();
  }

  /** Drops all unrecorded feedback. */
  clear(): void {
    this.#items = [];
    this.#dropped = undefined;
    this.#offered = null;
  }
}

const SOURCE_MAX_CHARS = 256;
const CUT = ' [cut]';

/**
 * The text of one piece of feedback, truncated to the bound. The length is counted as JSON like the bound of a record:
 * a control character has one byte in the text and six in JSON.
 */
export function boundedFeedback(said: string): string {
  const text = said.trim();
  if (jsonBytes(text) <= BOUNDS.feedbackBodyMaxBytes) return text;
  // Each character has at least one byte, so text beyond the bound cannot fit.
  let kept = cutText(text, BOUNDS.feedbackBodyMaxBytes);
  while (jsonBytes(kept + CUT) > BOUNDS.feedbackBodyMaxBytes) kept = cutText(kept, Math.floor(kept.length * 0.9));
  return kept + CUT;
}

function jsonBytes(text: string): number {
  return Buffer.byteLength(JSON.stringify(text), 'utf8') - 2;
}

/** Logs that feedback is lost. */
export function noteLostFeedback(log: Log, sessionId: string): void {
  log.warn({ session_id: sessionId }, 'inbox feedback without a record is lost');
}
