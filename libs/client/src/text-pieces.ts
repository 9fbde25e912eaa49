/** The text of a run's answers as pieces to print, each part of an answer once. */
import type { UiEvent } from './ui-events.ts';

/**
 * Takes the UI events of a run in order.
 * T1 An empty line separates two answers that have text.
 * T2 After a restart of an answer, text that repeats the earlier text is left out.
 * T3 If the new text differs from the earlier text, or ends before it, an empty line and the whole new text follow.
 */
export class TextPieces {
  #hasText = false;
  #isSeparate = false;
  /** The yielded text of the current answer. */
  #answer = '';
  /** The new text since a restart, while it repeats {@link #answer}; null without a restart. */
  #again: string | null = null;

  /** @returns the pieces to print after an event, in order. */
  of(event: UiEvent): string[] {
    switch (event.type) {
      case 'text_appended':
        return this.#appended(event.text);
      case 'answer_restarted':
        this.#again = '';
        return [];
      case 'answer_ended': {
        const rest = this.#again === null || this.#again === this.#answer ? [] : this.#differs(this.#again);
        this.#again = null;
        this.#answer = '';
        this.#isSeparate = this.#hasText;
        return rest;
      }
      default:
        return [];
    }
  }

  #appended(text: string): string[] {
    if (this.#again === null) {
      this.#answer += text;
      return this.#pieces(text);
    }
    this.#again += text;
    const again = this.#again;
    if (this.#answer.startsWith(again)) return [];
    this.#again = null;
    if (!again.startsWith(this.#answer)) return this.#differs(again);
    const rest = again.slice(this.#answer.length);
    this.#answer = again;
    return this.#pieces(rest);
  }

  #differs(whole: string): string[] {
    this.#answer = whole;
    this.#isSeparate = this.#hasText;
    return whole === '' ? [] : this.#pieces(whole);
  }

  #pieces(text: string): string[] {
    const pieces = this.#isSeparate ? ['\n\n', text] : [text];
    this.#isSeparate = false;
    this.#hasText = true;
    return pieces;
  }
}
