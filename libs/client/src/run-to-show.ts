/** Selects the run of a session that a stream shows, and finds its end. */
import { type CommandId, hasEnded, type JournalRecord, rejectionIn, type SessionRef } from '@coxswain/protocol';
import { inCallersNames } from './command-form.ts';
import { failureOfReceipt } from './receipt-failure.ts';
import type { JournalEntry } from './transport.ts';

/** A sent command that starts a run. */
export interface AwaitedCommand {
  readonly commandId: string;
  /** The number of its record, if its receipt says so. */
  readonly n: number | null;
  readonly verb: 'start' | 'prompt';
  /** Whether it becomes a steer during an active run: then it belongs to that run. */
  readonly maySteer?: boolean | undefined;
}

/** The part of a session's journal that the search for a run needs. */
export interface RunJournal {
  lastNumber(): Promise<number>;
  journal(): AsyncGenerator<JournalEntry, void, undefined>;
}

/** Finds the end of a run in a session's records. Feed it the records in order. */
export class RunEnd {
  readonly #present: number;
  readonly #awaited: AwaitedCommand | null;
  #isSeen: boolean;
  #hasRun = false;

  /**
   * @param present The newest record at the start: an earlier end of a run is ignored. 0 if only later records follow.
   * @param awaited The command that starts the run; null for the run of record `present`.
   */
  constructor(present: number, awaited: AwaitedCommand | null) {
    this.#present = awaited === null ? present : 0;
    this.#awaited = awaited;
    this.#isSeen = awaited === null;
  }

  /**
   * Whether the run is over after this record. A command that starts no run also ends it, such as a rejected prompt.
   */
  isAt(record: JournalRecord): boolean {
    const { n, state } = record;
    const isOver = hasEnded(state);
    if (!this.#isSeen) {
      const { commandId, n: inRecord } = this.#awaited as AwaitedCommand;
      const isAwaited = isCommand(record, commandId);
      this.#isSeen = isAwaited || (inRecord !== null && n >= inRecord);
      this.#hasRun = false;
      if (isAwaited && isOver) return true;
    }
    if (!this.#isSeen) return false;
    this.#hasRun ||= !isOver;
    return isOver && n >= this.#present && (this.#hasRun || n === this.#present);
  }
}

/** Whether a record contains this command. */
export function isCommand({ input }: JournalRecord, commandId: string): boolean {
  return input.type === 'command' && input.command_id === commandId;
}

/** The error of a command that this record rejects; null for any other record. */
export function rejectionAt(record: JournalRecord, { commandId, verb }: AwaitedCommand, ref: SessionRef): unknown {
  const rejected = isCommand(record, commandId) ? rejectionIn(record.events, commandId) : null;
  if (rejected === null) return null;
  const head = { type: 'receipt', session_id: ref.sessionId, command_id: commandId as CommandId, n: record.n } as const;
  return inCallersNames(verb, failureOfReceipt({ ...head, ...rejected }, ref));
}

function isPrompt({ events }: JournalRecord): boolean {
  return events.some(({ type }) => type === 'prompt_received');
}

/**
 * Selects the run that a stream shows: that of the awaited command, otherwise the newest.
 * @param from The first record to show; undefined: the first of the run.
 * @returns `first`: the record to read from; 1 for a session that does not exist yet. `command`: the record of the
 *   awaited command; null if there is none.
 * @throws errors of reading the journal.
 */
export async function runToShow(
  session: RunJournal,
  from: number | undefined,
  awaited: AwaitedCommand | null,
): Promise<ShownRun> {
  const last = await session.lastNumber();
  if (awaited !== null) {
    const { command, n, run } = await placeOf(session, awaited);
    const first = from ?? (awaited.maySteer ? run : n) ?? last + 1;
    return { first, end: new RunEnd(0, { ...awaited, n }), command };
  }
  const first = from ?? (last === 0 ? null : await lastWhere(session, isPrompt)) ?? 1;
  return { first, end: new RunEnd(first > last ? 0 : last, null), command: null };
}

interface ShownRun {
  readonly first: number;
  readonly end: RunEnd;
  readonly command: JournalRecord | null;
}

/** The record of a command and the first record of its run; null for what is not recorded yet. */
async function placeOf(
  session: RunJournal,
  { commandId, n: inRecord }: AwaitedCommand,
): Promise<{ readonly command: JournalRecord | null; readonly n: number | null; readonly run: number | null }> {
  let run: number | null = null;
  let isOver = true;
  for await (const { record } of session.journal()) {
    const { n, state } = record;
    if (isPrompt(record)) run = n;
    else if (isOver) run = null;
    if (n === inRecord || isCommand(record, commandId)) return { command: record, n, run };
    isOver = hasEnded(state);
  }
  return { command: null, n: inRecord, run: isOver ? inRecord : run };
}

async function lastWhere(session: RunJournal, is: (record: JournalRecord) => boolean): Promise<number | null> {
  let found: number | null = null;
  for await (const { record } of session.journal()) if (is(record)) found = record.n;
  return found;
}
