/**
 * The text of running answers, each piece shown once.
 * A1 Deltas are shown by their offsets. Text that was shown is left out. After a gap nothing is shown until the gap is
 *    filled.
 * A2 An answer is shown after the record that started its effect, so that it never appears before its cause.
 * A3 The record of an answer shows the rest of its text. If the shown text differs from the record, the answer is shown
 *    again as a whole.
 * A4 Late deltas of an effect that has ended are dropped. So are those of an answer that a later attempt or host has
 *    replaced.
 */
import { AnswerSoFar, type AssistantMessage, type Delta } from '@coxswain/protocol';
import { printable } from './args-summary.ts';
import type { UiEvent } from './ui-events.ts';

/**
 * The maximum number of buffered progress reports whose record has not been shown (A2). The oldest are dropped first.
 */
const HELD_MAX = 256;
/** The number of ended effects that are remembered (A4); late deltas arrive within seconds. */
const ENDED_MAX = 256;

/** The text of one attempt at an answer that was shown. */
interface Shown {
  readonly effectId: string;
  readonly attempt: string;
  text: string;
  reasoning: string;
}

/** Tracks the answers of one session and returns the text to show. */
export class AnswerText {
  #lastRecord: number;
  /** Without a limit: the host bounds the length of an answer. */
  readonly #soFar = new AnswerSoFar(Number.MAX_SAFE_INTEGER);
  #shown: Shown | null = null;
  readonly #ended = new Set<string>();
  #held: Delta[] = [];

  /** @param after The last record that was already shown. */
  constructor(after: number) {
    this.#lastRecord = after;
  }

  /** Takes a delta. @returns the text that can be shown now. */
  delta(delta: Delta): UiEvent[] {
    if (this.#ended.has(delta.effect_id)) return [];
    if (delta.kind === 'progress') return this.#progress(delta);
    const fit = this.#soFar.take(delta);
    return typeof fit === 'string' || fit.kind === 'call' ? [] : this.#showAnswer();
  }

  /** Marks a record as shown. @returns the text and progress that were held back for it. */
  recordShown(n: number): UiEvent[] {
    this.#lastRecord = Math.max(this.#lastRecord, n);
    const held = this.#held;
    this.#held = [];
    return [...held.flatMap((delta) => this.#progress(delta)), ...this.#showAnswer()];
  }

  /** Takes the record of an answer. @returns the rest of its text (A3). */
  complete(effectId: string, turn: number, message: AssistantMessage): UiEvent[] {
    const shown = this.#shown?.effectId === effectId ? this.#shown : { text: '', reasoning: '' };
    this.end(effectId);
    const whole = { reasoning: textIn(message, 'reasoning'), text: textIn(message, 'text') };
    if (!whole.text.startsWith(shown.text) || !whole.reasoning.startsWith(shown.reasoning))
      return [{ type: 'answer_restarted', turn }, ...appended(turn, whole.reasoning, whole.text)];
    return appended(turn, whole.reasoning.slice(shown.reasoning.length), whole.text.slice(shown.text.length));
  }

  /** Marks an effect as ended: later deltas of it are dropped. */
  end(effectId: string): void {
    if (this.#soFar.place?.effect_id === effectId) this.#soFar.end(effectId);
    if (this.#shown?.effectId === effectId) this.#shown = null;
    this.#ended.add(effectId);
    for (const oldest of this.#ended) {
      if (this.#ended.size <= ENDED_MAX) break;
      this.#ended.delete(oldest);
    }
  }

  #isDue(effectId: string): boolean {
    return Number.parseInt(effectId, 10) <= this.#lastRecord && !this.#ended.has(effectId);
  }

  #progress(delta: Delta): UiEvent[] {
    if (this.#isDue(delta.effect_id)) {
      const { call_id: callId = '', tool = null, text } = delta;
      return [{ type: 'call_progressed', callId, tool, text: printable(text) }];
    }
    if (!this.#ended.has(delta.effect_id)) this.#held.push(delta);
    if (this.#held.length > HELD_MAX) this.#held.shift();
    return [];
  }

  /** The part of the newest answer that has not been shown. */
  #showAnswer(): UiEvent[] {
    const { place, text, reasoning, turn } = this.#soFar;
    if (place === null || !this.#isDue(place.effect_id)) return [];
    const events: UiEvent[] = [];
    const attempt = `${place.epoch}/${place.attempt}`;
    let shown = this.#shown;
    if (shown?.effectId !== place.effect_id || shown.attempt !== attempt) {
      const isAgain = shown?.effectId === place.effect_id && (shown.text !== '' || shown.reasoning !== '');
      if (isAgain) events.push({ type: 'answer_restarted', turn });
      shown = { effectId: place.effect_id, attempt, text: '', reasoning: '' };
    }
    events.push(...appended(turn, reasoning.slice(shown.reasoning.length), text.slice(shown.text.length)));
    this.#shown = { ...shown, text, reasoning };
    return events;
  }
}

function appended(turn: number, reasoning: string, text: string): UiEvent[] {
  const events: UiEvent[] = [];
  if (reasoning !== '') events.push({ type: 'reasoning_appended', turn, text: printable(reasoning) });
  if (text !== '') events.push({ type: 'text_appended', turn, text: printable(text) });
  return events;
}

function textIn(message: AssistantMessage, type: 'text' | 'reasoning'): string {
  let text = '';
  for (const part of message.content) if (part.type === type) text += part.text;
  return text;
}
