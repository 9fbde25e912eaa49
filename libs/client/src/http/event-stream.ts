/** Server-sent events out of the bytes of an answer, as the HTML standard reads them. What is kept is one event, and that bounded. */
import { CoxswainError } from '../client-errors.ts';

/** One event. */
export interface ServerSentEvent {
  /** `message` where it does not say. */
  readonly event: string;
  readonly data: string;
}

/** One event, in characters; a record with its large fields in it is less. */
const EVENT_MAX_CHARS = 64 * 1024 * 1024;

/** Takes pieces of text in order. */
export class EventStreamParser {
  /** Pieces of a line that has not ended. */
  #line: string[] = [];
  #chars = 0;
  #data: string[] = [];
  #event = '';
  #endedByReturn = false;
  #begun = false;
  #retryMs: number | null = null;

  /** Requested delay before a reconnect, milliseconds; null if the server sent none. */
  get retryMs(): number | null {
    return this.#retryMs;
  }

  /** @returns the events that this piece completes. @throws CoxswainError `answer_unreadable` for one that has no end. */
  take(text: string): ServerSentEvent[] {
    const found: ServerSentEvent[] = [];
    let start = this.#begun || !text.startsWith('\uFEFF') ? 0 : 1;
    if (text !== '') this.#begun = true;
    // A line break of two characters may come in two pieces.
    if (this.#endedByReturn && text !== '') {
      if (text.startsWith('\n')) start = 1;
      this.#endedByReturn = false;
    }
    for (;;) {
      const end = lineEnd(text, start);
      if (end < 0) break;
      this.#keep(text.slice(start, end));
      const line = this.#line.join('');
      this.#line = [];
      const event = this.#take(line);
      if (event) found.push(event);
      start = end + 1;
      if (text[end] === '\r') {
        if (start === text.length) this.#endedByReturn = true;
        else if (text[start] === '\n') start++;
      }
    }
    this.#keep(text.slice(start));
    return found;
  }

  #keep(piece: string): void {
    if (piece === '') return;
    this.#chars += piece.length;
    if (this.#chars > EVENT_MAX_CHARS)
      throw new CoxswainError('answer_unreadable', `an event has more than ${EVENT_MAX_CHARS} characters`);
    this.#line.push(piece);
  }

  #take(line: string): ServerSentEvent | null {
    if (line === '') {
      const event = { event: this.#event || 'message', data: this.#data.join('\n') };
      const hasData = this.#data.length > 0;
      this.#data = [];
      this.#event = '';
      this.#chars = 0;
      return hasData ? event : null;
    }
    const colon = line.indexOf(':');
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + (line[colon + 1] === ' ' ? 2 : 1));
    if (name === 'data') this.#data.push(value);
    else {
      // What is not kept is not counted: a stream of comments never ends.
      this.#chars -= line.length;
      if (name === 'event') this.#event = value;
      if (name === 'retry' && /^\d{1,9}$/.test(value)) this.#retryMs = Number(value);
    }
    return null;
  }
}

function lineEnd(text: string, from: number): number {
  LINE_BREAK.lastIndex = from;
  return LINE_BREAK.exec(text)?.index ?? -1;
}

const LINE_BREAK = /[\r\n]/g;
