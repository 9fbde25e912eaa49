import { writeFile } from 'node:fs/promises';
import { exportLines, ResultCollector, type RunResult } from '@coxswain/client';
import {
  type CallStatus,
  type EventOf,
  type EventType,
  type JournalRecord,
  type Json,
  type Message,
  type Receipt,
  textOf,
  topState,
} from '@coxswain/protocol';
import { readRecord, Transcript } from '@coxswain/session';
import {
  checkEventType,
  type EventPattern,
  expectInOrder,
  expectNone,
  isIdleSeam,
  type JournalEvent,
  journalText,
  lineOf,
} from './expect-events.ts';
import { replayed } from './expect-replay.ts';
import { shapeDifference, shown } from './match-shape.ts';
import { ExpectationError } from './testing-errors.ts';

/** One tool call, from the model's request to the result that the model got. */
export interface CallSeen {
  readonly callId: string;
  readonly tool: string;
  /** The arguments of the tool; those of the model if the call never ran. */
  readonly args: Json;
  /** The status of its end; null before the end. */
  readonly status: CallStatus | null;
  /** The text of its result. */
  readonly text: string;
}

/** Reads blobs that records refer to. */
export interface BlobSource {
  get(sha256: string): Promise<Uint8Array | null>;
}

/** Reads a journal from its stored bytes. */
export async function readJournalOf(
  bytes: readonly Uint8Array[],
  blobs: BlobSource,
  more: { readonly before?: number; readonly receipts?: readonly Receipt[] } = {},
): Promise<Journal> {
  const records: JournalRecord[] = [];
  for (const one of bytes) records.push(await readRecord(one, blobs));
  return new Journal(bytes, records, blobs, more.before ?? 0, more.receipts ?? []);
}

/** A session's journal for tests. Its expectations throw {@link ExpectationError}. */
export class Journal {
  /** The stored bytes of each record. */
  readonly bytes: readonly Uint8Array[];
  readonly records: readonly JournalRecord[];
  /** All events, in order. */
  readonly events: readonly JournalEvent[];
  /** Receipts of the scene's commands; empty on a bus. */
  readonly receipts: readonly Receipt[];
  readonly #blobs: BlobSource;
  readonly #before: number;

  /** Created by a scene, a bus, or {@link readJournalOf}. */
  constructor(
    bytes: readonly Uint8Array[],
    records: readonly JournalRecord[],
    blobs: BlobSource,
    before: number,
    receipts: readonly Receipt[],
  ) {
    this.bytes = bytes;
    this.records = records;
    this.receipts = receipts;
    this.#blobs = blobs;
    this.#before = before;
    this.events = withTools(
      records.flatMap(({ n, events }) => events.map((event) => ({ ...event, n }) as JournalEvent)),
    );
  }

  /** The events of one type, in order: `journal.of('call_started')`. @throws SceneError for an unknown type. */
  of<T extends EventType>(
    type: T,
  ): readonly (EventOf<T> & { readonly n: number; readonly tool?: string | undefined })[] {
    checkEventType(type);
    return this.events.filter((event): event is Extract<JournalEvent, { type: T }> => event.type === type) as never;
  }

  /** The tool calls, in the order of the model's requests. */
  get calls(): readonly CallSeen[] {
    const calls: (CallSeen & { batch: number })[] = [];
    let batch = 0;
    for (const event of this.events) {
      if (event.type === 'message_complete') {
        batch += 1;
        for (const part of event.message.content)
          if (part.type === 'call')
            calls.push({ batch, callId: part.call_id, tool: part.tool, args: part.args, status: null, text: '' });
      }
      if (event.type !== 'call_started' && event.type !== 'call_ended') continue;
      // Providers may reuse call ids in each answer. The newest call with the id is the right one.
      const at = calls.findLastIndex(({ callId }) => callId === event.call_id);
      const call = calls[at];
      if (!call) continue;
      calls[at] =
        event.type === 'call_started'
          ? { ...call, args: event.args }
          : { ...call, status: event.status, text: textOfContent(event.result.content) };
    }
    return calls.map(({ batch: _, ...call }) => call);
  }

  /** The messages that a model would get now. */
  get transcript(): readonly Message[] {
    const transcript = new Transcript();
    for (const { events } of this.records) for (const event of events) transcript.push(event);
    return transcript.view();
  }

  /** The result of the newest run that has ended; null before the first. */
  get result(): RunResult | null {
    const results = new ResultCollector();
    for (const record of this.records) results.add(record);
    return results.newest;
  }

  /**
   * The name of the state after the newest record, for example `stopped` or `function_awaiting_approval`. Empty without
   * records.
   */
  get state(): string {
    const newest = this.records.at(-1);
    return newest ? topState(newest.state) : '';
  }

  /** The records that the last `when` added, as a journal of its own. */
  get added(): Journal {
    return new Journal(this.bytes.slice(this.#before), this.records.slice(this.#before), this.#blobs, 0, this.receipts);
  }

  /** The events as lines, without seams that delivered nothing. */
  get lines(): readonly string[] {
    return this.events.filter((event) => !isIdleSeam(event)).map(lineOf);
  }

  /** Asserts that these events happened in this order. Other events may come between them. @returns itself. */
  expect(...patterns: readonly EventPattern[]): this {
    expectInOrder(this.events, patterns);
    return this;
  }

  /** Asserts that no event matches one of these patterns. @returns itself. */
  expectNone(...patterns: readonly EventPattern[]): this {
    expectNone(this.events, patterns);
    return this;
  }

  /** Asserts that a run has ended, and its result: `{ stopReason: 'end_turn', text: /two words/ }`. @returns itself. */
  expectResult(shape: Readonly<Partial<Record<keyof RunResult, unknown>>>): this {
    const { result } = this;
    if (result === null)
      throw new ExpectationError(
        [`expected the run to end, and the session is ${this.state || 'not started'}`, ...this.#text()].join('\n'),
        shape,
        null,
      );
    return this.#hold('result', shape, result);
  }

  /**
   * Asserts that the model requested exactly these calls, in this order: `[{ tool: 'count_words', status: 'ok' }]`.
   * @returns itself.
   */
  expectCalls(shapes: readonly Readonly<Partial<Record<keyof CallSeen, unknown>>>[]): this {
    return this.#hold('calls', shapes, this.calls);
  }

  /** Asserts that a message of the transcript matches: `{ role: 'reminder', text: /tide/ }`. @returns itself. */
  expectMessage(shape: { readonly role: Message['role']; readonly text?: unknown }): this {
    const messages = this.transcript.map((message) => ({ role: message.role, text: textOf(message) }));
    if (messages.some((message) => shapeDifference(shape, message) === null)) return this;
    throw new ExpectationError(
      [
        `expected a message ${shown(shape)} in the transcript, which has:`,
        ...messages.map(({ role, text }) => `  ${role}: ${shown(text)}`),
      ].join('\n'),
      shape,
      messages,
    );
  }

  /**
   * Replays the journal with the installed code. @throws ExpectationError naming the first record that differs; also for
   * a journal without records.
   */
  async expectReplay(): Promise<this> {
    await replayed('the journal', this.bytes, this.#blobs);
    return this;
  }

  /**
   * Writes the journal as `cox session export` does, for `given({ journal })`, `expectReplay` or `cox session import`.
   */
  async save(path: string): Promise<void> {
    const lines: Uint8Array[] = [];
    const newline = new Uint8Array([0x0a]);
    for await (const line of exportLines(this.#stored(), (sha256) => this.#blobs.get(sha256)))
      lines.push(line, newline);
    await writeFile(path, Buffer.concat(lines));
  }

  /** The lines of the journal, with the number of each record. */
  toString(): string {
    return this.#text().join('\n');
  }

  async *#stored() {
    for (const [index, record] of this.records.entries()) yield { record, bytes: this.bytes[index] as Uint8Array };
  }

  #text(): string[] {
    return journalText(this.events);
  }

  #hold(what: string, shape: unknown, value: unknown): this {
    const difference = shapeDifference(shape, value);
    if (difference === null) return this;
    const path =
      difference.path === '' ? what : `${what}${difference.path.startsWith('[') ? '' : '.'}${difference.path}`;
    const message = [`expected the ${what} to be ${shown(shape)}`, `${path}: ${difference.why}`, ...this.#text()].join(
      '\n',
    );
    throw new ExpectationError(message, shape, value);
  }
}

/** Adds the tool's name to each event of a call. */
function withTools(events: readonly JournalEvent[]): readonly JournalEvent[] {
  const tools = new Map<string, string>();
  return events.map((event) => {
    if (event.type === 'message_complete')
      for (const part of event.message.content) if (part.type === 'call') tools.set(part.call_id, part.tool);
    const callId = 'call_id' in event ? event.call_id : undefined;
    const tool = callId === undefined || 'tool' in event ? undefined : tools.get(callId);
    return tool === undefined ? event : ({ ...event, tool } as JournalEvent);
  });
}

function textOfContent(content: readonly { readonly type: string; readonly text?: string }[]): string {
  return content.map(({ text = '' }) => text).join('');
}
