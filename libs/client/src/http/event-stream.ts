/** Parses server-sent events as the HTML standard defines them. It buffers at most one event of limited size. */
import { CoxswainError } from '../client-errors.ts';

/** A server-sent event. */
export interface ServerSentEvent {
  /** `message` if the event has no name. */
  readonly event: string;
  readonly data: string;
}

/** The maximum size of an event, in characters. A record with its large fields is smaller. */
const EVENT_MAX_CHARS = 64 * 1024 * 1024;

/** Takes the pieces of a stream in order. */
export class EventStreamParser {
  /** Pieces of an incomplete line. */
  #line: string[] = [];
  #chars = 0;
  #data: string[] = [];
  #event = '';
  #endedByReturn = false;
  #begun = false;
  #retryMs: number | null = null;

  /** The reconnect delay that the server requested, in milliseconds; null without one. */
  get retryMs(): number | null {
    return this.#retryMs;
  }

  /**
   * @returns the events that this piece completes.
   * @throws CoxswainError `answer_unreadable` for an event that is too large.
   */
  take(text: string): ServerSentEvent[] {
    const found: ServerSentEvent[] = [];
    let start = this.#begun || !text.startsWith('\uFEFF') ? 0 : 1;
    if (text !== '') this.#begun = true;
    // A line break of two characters may arrive in two pieces.
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
      // Discarded lines do not count: a stream of comments has no end.
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
