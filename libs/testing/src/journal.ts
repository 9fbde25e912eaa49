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
import { readRecord, replayJournal, Transcript } from '@coxswain/session';
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
import { replayFailure } from './expect-replay.ts';
import { shapeDifference, shown } from './match-shape.ts';
import { ExpectationError } from './testing-errors.ts';

/** One call of a tool, from what the model asked for to what it was told. */
export interface CallSeen {
  readonly callId: string;
  readonly tool: string;
  /** The arguments of the tool; those of the model if the call never ran. */
  readonly args: Json;
  /** How it ended; null while it has not. */
  readonly status: CallStatus | null;
  /** The text of its result. */
  readonly text: string;
}

/** Finds what lies apart of records. */
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
  /** The records as they are stored, one each. */
  readonly bytes: readonly Uint8Array[];
  readonly records: readonly JournalRecord[];
  /** All events, in order. */
  readonly events: readonly JournalEvent[];
  /** Receipts of the commands of the scene. */
  readonly receipts: readonly Receipt[];
  readonly #blobs: BlobSource;
  readonly #before: number;

  /** Made by a scene, a bus, or {@link readJournalOf}. */
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

  /** The events of one type, in order: `journal.of('call_started')`. @throws SceneError where there are none of that name. */
  of<T extends EventType>(
    type: T,
  ): readonly (EventOf<T> & { readonly n: number; readonly tool?: string | undefined })[] {
    checkEventType(type);
    return this.events.filter((event): event is Extract<JournalEvent, { type: T }> => event.type === type) as never;
  }

  /** The calls of tools, in the order in which the model asked for them. */
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
      // Providers may number calls anew in each answer: the newest of this id is meant.
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

  /** What a model would be shown now. */
  get transcript(): readonly Message[] {
    const transcript = new Transcript();
    for (const { events } of this.records) for (const event of events) transcript.push(event);
    return transcript.view();
  }

  /** How the newest run ended; null where none has. */
  get result(): RunResult | null {
    const results = new ResultCollector();
    for (const record of this.records) results.add(record);
    return results.newest;
  }

  /** The name of the state after the newest record, `stopped` or `function_awaiting_approval` for two. */
  get state(): string {
    const newest = this.records.at(-1);
    return newest ? topState(newest.state) : '';
  }

  /** What the last `when` has added, as a journal of its own: what came before it is not looked at. */
  get added(): Journal {
    return new Journal(this.bytes.slice(this.#before), this.records.slice(this.#before), this.#blobs, 0, this.receipts);
  }

  /** The events as lines; those of seams that delivered nothing are left out. */
  get lines(): readonly string[] {
    return this.events.filter((event) => !isIdleSeam(event)).map(lineOf);
  }

  /** Holds that these events happened in this order; others may lie between them. @returns itself. */
  expect(...patterns: readonly EventPattern[]): this {
    expectInOrder(this.events, patterns);
    return this;
  }

  /** Holds that no event is like one of these. @returns itself. */
  expectNone(...patterns: readonly EventPattern[]): this {
    expectNone(this.events, patterns);
    return this;
  }

  /** Holds that a run has ended, and how: `{ stopReason: 'end_turn', text: /two words/ }`. @returns itself. */
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

  /** Holds that exactly these calls were asked for, in this order: `[{ tool: 'count_words', status: 'ok' }]`. @returns itself. */
  expectCalls(shapes: readonly Readonly<Partial<Record<keyof CallSeen, unknown>>>[]): this {
    return this.#hold('calls', shapes, this.calls);
  }

  /** Holds that a message of the transcript is like this: `{ role: 'reminder', text: /tide/ }`. @returns itself. */
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

  /** Replays it with the present code. @throws ExpectationError naming the first record that comes out otherwise. */
  async expectReplay(): Promise<this> {
    await replayJournal(this.bytes, this.#blobs).catch((error: unknown) => {
      throw replayFailure('the journal', error);
    });
    return this;
  }

  /** Writes it as `cox session export` does, to be given to `given({ journal })`, `expectReplay` or `cox session import`. */
  async save(path: string): Promise<void> {
    const lines: Uint8Array[] = [];
    const newline = new Uint8Array([0x0a]);
    for await (const line of exportLines(this.#stored(), (sha256) => this.#blobs.get(sha256)))
      lines.push(line, newline);
    await writeFile(path, Buffer.concat(lines));
  }

  /** Its lines, with the number of each record. */
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

/** Says of every event of a call which tool it is about. */
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
