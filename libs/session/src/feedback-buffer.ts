/**
 * Inbox feedback on its way into the journal. It is kept here until a record that holds it is acknowledged; what finds
 * no room is counted, and the count goes into the journal with the next record of feedback.
 */
import { BOUNDS, type Feedback, type FeedbackInput } from '@coxswain/protocol';

/** The feedback of one session that no record holds yet. Bounded. */
export class FeedbackBuffer {
  #items: Feedback[] = [];
  #dropped: FeedbackInput['dropped'];

  /** Takes one piece; an empty one says nothing. */
  add(source: string, text: string): void {
    const body = bounded(String(text).trim());
    if (body === '') return;
    const known = source.slice(0, SOURCE_MAX_CHARS);
    if (this.#items.length < BOUNDS.feedbackPendingMax) this.#items.push({ source: known, body });
    else this.#dropped = { count: (this.#dropped?.count ?? 0) + 1, source: known };
  }

  /** Whether something waits to be recorded. */
  get isEmpty(): boolean {
    return this.#items.length === 0 && this.#dropped === undefined;
  }

  /** What waits, as an input. It stays here until it is {@link recorded}. */
  input(): FeedbackInput {
    return { type: 'feedback', items: [...this.#items], ...(this.#dropped ? { dropped: { ...this.#dropped } } : {}) };
  }

  /** A record holds this input. */
  recorded({ items, dropped }: FeedbackInput): void {
    this.#items = this.#items.slice(items.length);
    const left = (this.#dropped?.count ?? 0) - (dropped?.count ?? 0);
    this.#dropped = this.#dropped && left > 0 ? { ...this.#dropped, count: left } : undefined;
  }
}

const SOURCE_MAX_CHARS = 256;
const CUT = ' [cut]';

// Counted as JSON, because that is what a record's bound counts: a control character is one byte here and six there.
function bounded(text: string): string {
  if (jsonBytes(text) <= BOUNDS.feedbackBodyMaxBytes) return text;
  // At least a byte for each, so what lies beyond cannot fit in any case.
  let kept = text.slice(0, BOUNDS.feedbackBodyMaxBytes);
  while (jsonBytes(kept + CUT) > BOUNDS.feedbackBodyMaxBytes) kept = kept.slice(0, Math.floor(kept.length * 0.9));
  // Half of a character that was cut in two says nothing.
  return kept.replace(/[\ud800-\udbff]$/, '') + CUT;
}

function jsonBytes(text: string): number {
  return Buffer.byteLength(JSON.stringify(text), 'utf8') - 2;
}
