/**
 * The text of running answers, given out once.
 * A1 Deltas of an effect are shown densely from index 0; after a gap nothing more of it is shown until its record.
 * A2 An effect's deltas wait until the record that asked for the effect has been shown, so that an answer never
 *    appears before what caused it.
 * A3 The record of an answer shows exactly what its deltas have not.
 * A4 Nothing of an effect is shown after its record, and nothing of an older epoch than the newest seen.
 */
import type { AssistantMessage, Delta } from '@coxswain/protocol';
import { printable } from './args-summary.ts';
import type { UiEvent } from './ui-events.ts';

/** Deltas that wait for their record (A2). Beyond it they are dropped, which counts as a gap (A1). */
const HELD_MAX = 2_048;
/** Effects whose end is remembered (A4); late deltas come within seconds. */
const ENDED_MAX = 256;

interface RunningAnswer {
  epoch: number;
  nextIndex: number;
  gap: boolean;
  text: string;
  reasoning: string;
  turn: number;
}

/** Follows the answers of one session. */
export class AnswerText {
  #lastRecord = 0;
  readonly #running = new Map<string, RunningAnswer>();
  readonly #ended = new Set<string>();
  #held: Delta[] = [];

  /** A delta arrived: what may be shown of it now. */
  delta(delta: Delta): UiEvent[] {
    const askedIn = Number.parseInt(delta.effect_id, 10);
    if (!(askedIn <= this.#lastRecord)) {
      if (this.#held.length < HELD_MAX) this.#held.push(delta);
      return [];
    }
    return this.#show(delta);
  }

  /** Everything of a record has been shown: what had been waiting for it. */
  recordShown(n: number): UiEvent[] {
    this.#lastRecord = Math.max(this.#lastRecord, n);
    const due = this.#held.filter((delta) => Number.parseInt(delta.effect_id, 10) <= n);
    if (due.length === 0) return [];
    this.#held = this.#held.filter((delta) => Number.parseInt(delta.effect_id, 10) > n);
    return due.flatMap((delta) => this.#show(delta));
  }

  /** The record of an answer: the rest of its text (A3). */
  complete(effectId: string, turn: number, message: AssistantMessage): UiEvent[] {
    const shown = this.#running.get(effectId);
    this.end(effectId);
    const whole = { reasoning: textIn(message, 'reasoning'), text: textIn(message, 'text') };
    if (shown && !(whole.text.startsWith(shown.text) && whole.reasoning.startsWith(shown.reasoning))) {
      return [{ type: 'answer_restarted', turn }, ...appended(turn, whole.reasoning, whole.text)];
    }
    return appended(
      turn,
      whole.reasoning.slice(shown?.reasoning.length ?? 0),
      whole.text.slice(shown?.text.length ?? 0),
    );
  }

  /** The effect has ended: whatever comes of it later is dropped. */
  end(effectId: string): void {
    this.#running.delete(effectId);
    this.#ended.add(effectId);
    for (const oldest of this.#ended) {
      if (this.#ended.size <= ENDED_MAX) break;
      this.#ended.delete(oldest);
    }
  }

  #show(delta: Delta): UiEvent[] {
    if (this.#ended.has(delta.effect_id)) return [];
    if (delta.kind === 'progress') {
      return [
        {
          type: 'call_progressed',
          call_id: delta.call_id ?? '',
          tool: delta.tool ?? null,
          text: printable(delta.text),
        },
      ];
    }
    const events: UiEvent[] = [];
    let answer = this.#running.get(delta.effect_id);
    if (answer && delta.epoch < answer.epoch) return [];
    // Index 0 again is the same request sent again: by another host, or after an error in the stream.
    if (answer && (delta.epoch > answer.epoch || (delta.index === 0 && answer.nextIndex > 0))) {
      if (answer.text !== '' || answer.reasoning !== '') events.push({ type: 'answer_restarted', turn: delta.turn });
      answer = undefined;
    }
    if (!answer) {
      answer = { epoch: delta.epoch, nextIndex: 0, gap: false, text: '', reasoning: '', turn: delta.turn };
      this.#running.set(delta.effect_id, answer);
    }
    if (delta.index !== answer.nextIndex) answer.gap = true;
    if (answer.gap) return events;
    answer.nextIndex++;
    if (delta.kind === 'text') {
      answer.text += delta.text;
      events.push(...appended(delta.turn, '', delta.text));
    } else if (delta.kind === 'reasoning') {
      answer.reasoning += delta.text;
      events.push(...appended(delta.turn, delta.text, ''));
    }
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
