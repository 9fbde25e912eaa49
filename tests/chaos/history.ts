/**
 * The recorded history: what clients did and were told, what was done to processes and when, line by line on the disk,
 * so that a run can be checked again from its files. Times are milliseconds of CLOCK_MONOTONIC, which all processes of
 * the machine share; the first entry ties them to the wall clock, by which the store stamps records.
 */
import { closeSync, openSync, readSync, writeSync } from 'node:fs';
import type { Receipt } from '@coxswain/protocol';
import { monotonicMs } from '../bench/monotonic.ts';

/** What kind of process something was done to. */
export type Role = 'host' | 'worker' | 'server';

/** A process and its resident memory. */
export interface MemorySample {
  readonly role: Role;
  readonly name: string;
  readonly rssKib: number;
}

/** One thing that happened. */
export type Happening =
  | {
      readonly what: 'run';
      readonly scenario: string;
      readonly options: Readonly<Record<string, string | number>>;
      /** The wall clock at this entry's time. */
      readonly wallMs: number;
    }
  | { readonly what: 'phase'; readonly phase: 'load' | 'settling' | 'settled' | 'unsettled'; readonly detail?: string }
  /** A client begins to publish. `op` numbers its attempts: the same command may be published several times. */
  | {
      readonly what: 'invoked';
      readonly op: number;
      readonly session: string;
      readonly verb: string;
      readonly commandId: string;
      readonly over: 'client' | 'bare';
      /** Published before under the same id. */
      readonly again: boolean;
    }
  /** The store has it; `seq` is null where only the receipt said so. */
  | { readonly what: 'stored'; readonly op: number; readonly seq: number | null; readonly duplicate: boolean }
  /** It was not acknowledged: it may be stored all the same, unless it is certain that it is not. */
  | { readonly what: 'unacknowledged'; readonly op: number; readonly isCertain: boolean; readonly error: string }
  /** It is stored, and the receipt that was waited for has not come. */
  | { readonly what: 'no_receipt'; readonly op: number; readonly error: string }
  | { readonly what: 'receipt'; readonly receipt: Receipt }
  /** A fault of the nemesis begins or has ended. `on` names whom it strikes. */
  | {
      readonly what: 'fault';
      readonly fault: string;
      readonly phase: 'begins' | 'ended' | 'failed';
      readonly on: string;
      readonly detail?: string;
    }
  | {
      readonly what: 'process';
      readonly role: Role;
      readonly name: string;
      readonly pid: number;
      readonly did: 'started' | 'up' | 'killed' | 'paused' | 'resumed' | 'told_to_stop' | 'ended';
      readonly detail?: string;
    }
  | { readonly what: 'memory'; readonly samples: readonly MemorySample[] };

/** A happening and when it was. */
export type HistoryEntry = Happening & { readonly atMs: number };

/** Entries of one kind. */
export type EntryOf<W extends Happening['what']> = Extract<HistoryEntry, { readonly what: W }>;

/** Writes a history while it happens. */
export class HistoryWriter {
  readonly #file: number;
  #isOpen = true;

  constructor(path: string) {
    this.#file = openSync(path, 'a');
  }

  /** Writes down what has just happened, or what happened at `atMs`. */
  push(happening: Happening, atMs = monotonicMs()): void {
    if (this.#isOpen)
      writeSync(this.#file, `${JSON.stringify({ ...happening, atMs: Math.round(atMs * 1e3) / 1e3 })}\n`);
  }

  /** What comes later is not part of it. */
  close(): void {
    if (this.#isOpen) closeSync(this.#file);
    this.#isOpen = false;
  }
}

/** A history that is read. */
export class History {
  readonly entries: readonly HistoryEntry[];

  constructor(entries: readonly HistoryEntry[]) {
    this.entries = entries;
  }

  static read(path: string): History {
    return new History([...linesOf<HistoryEntry>(path)]);
  }

  /** The entries of one kind. */
  of<W extends Happening['what']>(what: W): EntryOf<W>[] {
    return this.entries.filter((entry): entry is EntryOf<W> => entry.what === what);
  }

  /** The history's time of a moment by the wall clock, milliseconds. */
  atOfWall(wallMs: number): number {
    const [run] = this.of('run');
    if (!run) throw new Error('the history does not say when it began');
    return wallMs - run.wallMs + run.atMs;
  }
}

/** Lines of JSON; one that was cut off by a kill at the end is left out. */
export function jsonLines<T>(text: string): T[] {
  return text
    .slice(0, text.lastIndexOf('\n') + 1)
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as T);
}

/** The same of a file, which may be longer than a string can be. */
export function* linesOf<T>(path: string): Generator<T, void, undefined> {
  const file = openSync(path, 'r');
  const chunk = Buffer.alloc(READ_AT_ONCE_BYTES);
  let begun = Buffer.alloc(0);
  try {
    for (let read = readSync(file, chunk); read > 0; read = readSync(file, chunk)) {
      const bytes = Buffer.concat([begun, chunk.subarray(0, read)]);
      const end = bytes.lastIndexOf(0x0a) + 1;
      yield* jsonLines<T>(bytes.toString('utf8', 0, end));
      begun = bytes.subarray(end);
    }
  } finally {
    closeSync(file);
  }
}

const READ_AT_ONCE_BYTES = 4 * 1024 * 1024;
