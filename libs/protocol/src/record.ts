/** The record: one journal entry, one message on the bus, one commit. */
import { z } from 'zod';
import { BOUNDS } from './bounds.ts';
import { canonicalJson } from './canonical-json.ts';
import { SessionEvent } from './events.ts';
import { Input } from './inputs.ts';

/** The record shape that this release writes. Readers take every shape ever released. */
export const RECORD_VERSION = 1;

/** Where in a command stream a session has read to. `created` names the stream's incarnation; another one starts at 0. */
export const Cursor = z.strictObject({ stream: z.string(), created: z.string(), seq: z.number().int().nonnegative() });
/** See {@link Cursor}. */
export type Cursor = z.infer<typeof Cursor>;

/** The machine's value after a record: a state's name, or a state with its child. */
export const StateValue = z.union([z.string(), z.record(z.string(), z.string())]);
/** See {@link StateValue}. */
export type StateValue = z.infer<typeof StateValue>;

/** One journal entry: one input and everything that followed from it until the machine waited again. */
export const JournalRecord = z.strictObject({
  v: z.literal(RECORD_VERSION),
  session_id: z.string(),
  /** Dense per session, from 1. */
  n: z.number().int().positive(),
  epoch: z.number().int().positive(),
  /** Who wrote it: the writing host's incarnation. Tells two hosts' records apart that are otherwise the same. */
  attempt: z.string(),
  /** SHA-256 of the bytes of the record before, hex; 64 zeros in the first. */
  prev_hash: z.string().regex(/^[0-9a-f]{64}$/),
  /** ISO 8601, from the host's clock. */
  at: z.iso.datetime(),
  /** The inbox position that this record consumed up to. Only in records of commands. */
  cursor: Cursor.optional(),
  input: Input,
  events: z.array(SessionEvent),
  state: StateValue,
  effects_open: z.array(z.string()),
});
/** See {@link JournalRecord}. */
export interface JournalRecord {
  readonly v: typeof RECORD_VERSION;
  readonly session_id: string;
  readonly n: number;
  readonly epoch: number;
  readonly attempt: string;
  readonly prev_hash: string;
  readonly at: string;
  readonly cursor?: Cursor | undefined;
  readonly input: Input;
  readonly events: readonly SessionEvent[];
  readonly state: StateValue;
  readonly effects_open: readonly string[];
}

/** `prev_hash` of a session's first record. */
export const GENESIS_HASH = '0'.repeat(64);

/** A record's bytes as they are stored: canonical JSON in UTF-8. */
export function encodeRecord(record: JournalRecord): Uint8Array {
  return new TextEncoder().encode(canonicalJson(record));
}

/** A record is over its bound; nothing was appended. */
export class RecordTooLargeError extends Error {
  override readonly name = 'RecordTooLargeError';
  readonly code = 'record_too_large';
  constructor(bytes: number) {
    super(`a record has ${bytes} bytes, at most ${BOUNDS.recordMaxBytes} are kept`);
  }
}

/** A record could not be read: its bytes are not one of the shapes ever released. */
export class RecordUnreadableError extends Error {
  readonly code = 'record_unreadable';
}

/**
 * Reads a record's bytes.
 * @throws RecordUnreadableError naming the member that does not fit.
 */
export function decodeRecord(bytes: Uint8Array): JournalRecord {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (error) {
    throw new RecordUnreadableError(`a record is not JSON: ${(error as Error).message}`);
  }
  const version = (value as { v?: unknown } | null)?.v;
  if (version !== RECORD_VERSION)
    throw new RecordUnreadableError(`record version ${String(version)} is not known to this release`);
  const parsed = JournalRecord.safeParse(value);
  if (!parsed.success)
    throw new RecordUnreadableError(
      `a record does not fit version ${RECORD_VERSION}: ${z.prettifyError(parsed.error)}`,
    );
  return parsed.data as JournalRecord;
}
