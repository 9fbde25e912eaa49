import type { Session, WatchItem } from '@coxswain/client';
import { type AnswerPieces, type AnswerPlace, AnswerSoFar, type Delta, type JournalRecord } from '@coxswain/protocol';
import { GATEWAY_BOUNDS } from '../context/mod.ts';

/** A record or a delta, formatted. All watchers share its bytes. */
export class FeedItem {
  /** Number of the record; null for a delta. */
  readonly n: number | null;
  /** The delta; null for a record. */
  readonly delta: Delta | null;
  /** The effect whose answer the record contains; null if there is none. */
  readonly answered: string | null;
  /** The item as a server-sent event. */
  readonly frame: Buffer;
  readonly #head: string;
  readonly #onMessage: ((item: FeedItem, bytes: number) => void) | undefined;
  #message: Buffer | null = null;

  /** @param onMessage called when the item has been formatted as a message, with the size of the message in bytes. */
  constructor(item: JournalRecord | Delta, onMessage?: (item: FeedItem, bytes: number) => void) {
    this.#onMessage = onMessage;
    const isDelta = 'type' in item;
    this.n = isDelta ? null : item.n;
    this.delta = isDelta ? item : null;
    this.answered = !isDelta && item.input.type === 'model_outcome' ? item.input.effect_id : null;
    this.#head = isDelta ? 'event: delta\ndata: ' : `id: ${item.n}\nevent: record\ndata: `;
    // JSON escapes line breaks, so its text is one line.
    this.frame = bytesOf(`${this.#head}${JSON.stringify(item)}${FRAME_END}`);
  }

  /** The record or delta as JSON. */
  get json(): string {
    return this.frame.toString('utf8', this.#head.length, this.frame.length - FRAME_END.length);
  }

  /** The item as a WebSocket message. It is made when the first WebSocket needs it. */
  get message(): Buffer {
    if (this.#message === null) {
      const head = this.n === null ? '{"type":"delta","delta":' : `{"type":"record","n":${this.n},"record":`;
      this.#message = bytesOf(`${head}${this.json}}`);
      this.#onMessage?.(this, this.#message.length);
    }
    return this.#message;
  }

  /** Memory of the item, bytes: with its frame, and with its message if a WebSocket has needed it. */
  get bytes(): number {
    const message = this.#message?.length ?? 0;
    return GATEWAY_BOUNDS.feedItemBytes + this.frame.length + message + textBytes(this.delta?.text ?? '');
  }
}

const FRAME_END = '\n\n';

/** Bytes with a memory of their own. A small `Buffer.from(text)` would keep the whole pool of which it is a part. */
function bytesOf(text: string): Buffer {
  const { buffer, byteOffset, length } = new TextEncoder().encode(text);
  return Buffer.from(buffer, byteOffset, length);
}

/** Memory of a text at most, bytes: a JavaScript string has up to two per character. */
function textBytes(text: string): number {
  return 2 * text.length;
}

/**
 * One session as this process follows it, for any number of watchers.
 *
 * F1  The journal is read once for all watchers: each record and each delta is formatted once. An exception is a record
 *     that exceeds the bytes of F2: each watcher reads it from the journal.
 * F2  The kept items are bounded in number, and together with the answer so far in bytes. A watcher behind them reads
 *     the journal.
 * F3  A watcher asks for the next items when it has written the previous ones: nothing is queued for it here.
 * F4  Record numbers are dense: a watcher misses none and sees none twice, wherever it reads them.
 * F5  The text so far of the running answer is kept, if it fits: a watcher that joins in the middle gets it.
 */
export class SessionFeed {
  readonly #items: FeedItem[] = [];
  readonly #bytesMax: () => number;
  readonly #leaving = new AbortController();
  readonly #waiting = new Set<() => void>();
  #answer = new AnswerSoFar();
  /** Position of the first kept item, counted from the first item of the feed. */
  #base = 0;
  #bytes = 0;
  #newest = 0;
  #failure: unknown = null;
  #ended = false;
  /** Resolves when the feed has ended. Never rejects: see {@link failure}. */
  readonly done: Promise<void>;

  /** @param bytesMax the current limit of the kept items and the answer so far, in bytes. */
  constructor(session: Session, bytesMax: () => number = () => GATEWAY_BOUNDS.feedMaxBytes) {
    this.#bytesMax = bytesMax;
    this.done = this.#follow(session);
  }

  /** Number of the newest record; 0 before the first record was read. */
  get newest(): number {
    return this.#newest;
  }

  /** The error that ended the feed; null if it has not ended, or was stopped. */
  get failure(): unknown {
    return this.#failure;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** The position after the newest item. */
  get end(): number {
    return this.#base + this.#items.length;
  }

  /**
   * The position at which a watcher gets record `n` next. Null if the record is no longer kept and must be read from
   * the journal, or no record was read yet.
   */
  placeOf(n: number): number | null {
    if (this.#newest === 0) return null;
    if (n > this.#newest) return this.end;
    const index = this.#items.findIndex((item) => item.n !== null && item.n >= n);
    return index >= 0 && this.#items[index]?.n === n ? this.#base + index : null;
  }

  /** The item at a position; null if it is no longer kept, undefined if it does not exist yet. */
  at(place: number): FeedItem | null | undefined {
    return place < this.#base ? null : this.#items[place - this.#base];
  }

  /**
   * The pieces of the running answer that a watcher at {@link end} lacks.
   * @param from the watcher's place in the answer; null for the whole answer.
   */
  answerAfter(from: AnswerPlace | null): AnswerPieces {
    return this.#answer.after(from);
  }

  /** Resolves when an item at this position exists, the feed has ended, or the signal aborts. */
  async waitForItem(place: number, signal: AbortSignal): Promise<void> {
    if (this.#ended || this.end > place || signal.aborted) return;
    await new Promise<void>((resolve) => {
      const wake = () => {
        this.#waiting.delete(wake);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      this.#waiting.add(wake);
      signal.addEventListener('abort', wake);
    });
  }

  /** Resolves when record `n` was read, the feed has ended, the time (ms) is over, or the signal aborts. */
  async waitForRecord(n: number, withinMs: number, signal: AbortSignal): Promise<void> {
    const waiting = new AbortController();
    const end = () => waiting.abort();
    const late = setTimeout(end, withinMs);
    signal.addEventListener('abort', end);
    while (this.#newest < n && !this.#ended && !signal.aborted && !waiting.signal.aborted)
      await this.waitForItem(this.end, waiting.signal);
    clearTimeout(late);
    signal.removeEventListener('abort', end);
  }

  /**
   * Applies the limits: drops the answer so far if it exceeds half of the bytes, and the oldest items if they exceed the
   * rest. Call it when the limit has changed.
   */
  trim(): void {
    const maxBytes = this.#bytesMax();
    // Later deltas of the answer do not fit the new, empty one. Who joins within the answer gets it with its record.
    if (this.#answerBytes > maxBytes / 2) this.#answer = new AnswerSoFar();
    const itemsMaxBytes = maxBytes - this.#answerBytes;
    while (
      this.#items.length > 0 &&
      (this.#items.length > GATEWAY_BOUNDS.feedItemsMax || this.#bytes > itemsMaxBytes)
    ) {
      this.#bytes -= this.#items.shift()?.bytes ?? 0;
      this.#base++;
    }
  }

  get #answerBytes(): number {
    return textBytes(this.#answer.text) + textBytes(this.#answer.reasoning);
  }

  /** Stops following the session. */
  stop(): void {
    this.#leaving.abort();
  }

  async #follow(session: Session): Promise<void> {
    try {
      // From the newest record on: watchers read older records from the journal.
      for await (const item of session.records({ deltas: true, from: 'newest', signal: this.#leaving.signal }))
        this.#push(item);
      if (!this.#leaving.signal.aborted) this.#failure = new Error('the connection to the bus was closed');
    } catch (error) {
      this.#failure = error;
    } finally {
      this.#ended = true;
      this.#wake();
    }
  }

  #push({ record, delta }: WatchItem): void {
    if (delta) this.#answer.take(delta);
    else if (record?.input.type === 'model_outcome') this.#answer.end(record.input.effect_id);
    const item = record ?? delta;
    // Before the first record, no position exists. The answer so far contains these deltas.
    if (item && (record || this.#newest > 0)) {
      const kept = new FeedItem(item, (...made) => this.#addMessage(...made));
      this.#items.push(kept);
      this.#bytes += kept.bytes;
      if (kept.n !== null) this.#newest = kept.n;
    }
    this.trim();
    this.#wake();
  }

  /** Counts the message of an item, if the item is still kept. */
  #addMessage(item: FeedItem, bytes: number): void {
    if (!this.#items.includes(item)) return;
    this.#bytes += bytes;
    this.trim();
  }

  #wake(): void {
    for (const wake of [...this.#waiting]) wake();
  }
}
