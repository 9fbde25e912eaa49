/**
 * Inbox feedback on its way into the journal. It is kept here until a record that holds it is acknowledged; what finds
 * no room is counted, and the count goes into the journal with the next record of feedback.
 *
 * FEEDBACK-1  Where an append has no answer, the journal itself says whether it holds what was offered: a record has one number
 *     and one writer, and a writer offers one thing as one record.
 */
import type { Log } from '@coxswain/ports';
import { BOUNDS, cutText, type Feedback, type FeedbackInput, type JournalRecord } from '@coxswain/protocol';

/** The feedback of one session that no record holds yet. Bounded. */
export class FeedbackBuffer {
  #items: Feedback[] = [];
  #dropped: FeedbackInput['dropped'];
  #offered: { readonly n: number; readonly attempt: string; readonly input: FeedbackInput } | null = null;

  /** Takes one piece; an empty one says nothing. */
  add(source: string, text: string): void {
    const body = boundedFeedback(String(text));
    if (body === '') return;
    const known = cutText(source, SOURCE_MAX_CHARS);
    if (this.#items.length < BOUNDS.feedbackPendingMax) this.#items.push({ source: known, body });
    else this.#dropped = { count: (this.#dropped?.count ?? 0) + 1, source: known };
  }

  /** Whether something waits to be recorded. */
  get isEmpty(): boolean {
    return this.#items.length === 0 && this.#dropped === undefined;
  }

  /** What waits, as the input of a record that is about to be appended. It stays here until it is {@link recorded}. */
  offer(n: number, attempt: string): FeedbackInput {
    const input: FeedbackInput = {
      type: 'feedback',
      items: [...this.#items],
      ...(this.#dropped ? { dropped: { ...this.#dropped } } : {}),
    };
    this.#offered = { n, attempt, input };
    return input;
  }

  /** What was offered last stands in the journal. */
  recorded(): void {
    if (!this.#offered) return;
    const { items, dropped } = this.#offered.input;
    this.#offered = null;
    this.#items = this.#items.slice(items.length);
    const left = (this.#dropped?.count ?? 0) - (dropped?.count ?? 0);
    this.#dropped = this.#dropped && left > 0 ? { ...this.#dropped, count: left } : undefined;
  }

  /** A record of the session, as it is read: it may be the one that was offered (FEEDBACK-1). */
  recall({ n, attempt, input }: Pick<JournalRecord, 'n' | 'attempt' | 'input'>): void {
    if (input.type === 'feedback' && this.#offered?.n === n && this.#offered.attempt === attempt) this.recorded();
  }

  /** Lets go of what waits. */
  clear(): void {
    this.#items = [];
    this.#dropped = undefined;
    this.#offered = null;
  }
}

const SOURCE_MAX_CHARS = 256;
const CUT = ' [cut]';

/**
 * The text of one piece of feedback, cut where it is too long. Counted as JSON, because that is what a record's bound
 * counts: a control character is one byte here and six there.
 */
export function boundedFeedback(said: string): string {
  const text = said.trim();
  if (jsonBytes(text) <= BOUNDS.feedbackBodyMaxBytes) return text;
  // At least a byte for each, so what lies beyond cannot fit in any case.
  let kept = cutText(text, BOUNDS.feedbackBodyMaxBytes);
  while (jsonBytes(kept + CUT) > BOUNDS.feedbackBodyMaxBytes) kept = cutText(kept, Math.floor(kept.length * 0.9));
  return kept + CUT;
}

function jsonBytes(text: string): number {
  return Buffer.byteLength(JSON.stringify(text), 'utf8') - 2;
}

/** Says that nobody will be told what was said here. */
export function noteLostFeedback(log: Log, sessionId: string): void {
  log.warn({ session_id: sessionId }, 'inbox feedback without a record is lost');
}
