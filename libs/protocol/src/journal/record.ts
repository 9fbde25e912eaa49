/** The record: one journal entry, one message on the bus, one commit. */
import * as z from 'zod';
import { CoxswainError } from '../catalogues/error-codes.ts';
import { BOUNDS } from '../wire/bounds.ts';
import { type CamelCased, fromWire } from '../wire/casing.ts';
import { BlobRef, pointerKeys } from '../wire/json.ts';
import { problemSentences, readStrictly } from '../wire/schema-problems.ts';
import { SessionEvent } from './events.ts';
import { Input } from './inputs.ts';
import { isReadOn, type RawRecord, readOn, UPCASTS, type Upcast } from './record-upcasts.ts';
import { deletionSentence, Tombstone, tombstoneIn } from './tombstone.ts';

/** The record shape that this release writes. Readers take every shape ever released: see `record-upcasts.ts`. */
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

/** A record is over its bound; nothing was appended. */
export class RecordTooLargeError extends Error {
  override readonly name = 'RecordTooLargeError';
  readonly code = 'record_too_large';
  constructor(bytes: number) {
    super(`a record has ${bytes} bytes, at most ${BOUNDS.recordMaxBytes} are kept`);
  }
}

/** A record could not be read: its bytes are not one of the shapes ever released. */
export class RecordUnreadableError extends CoxswainError {
  override readonly name: string = 'RecordUnreadableError';
  override readonly code: 'record_unreadable' | 'blob_missing' | 'session_deleted' = 'record_unreadable';

  constructor(message: string) {
    super('record_unreadable', message);
  }
}

/** A record is of a version that this release does not know: another release wrote it, and nothing is wrong with it. */
export class RecordVersionUnknownError extends RecordUnreadableError {
  override readonly name = 'RecordVersionUnknownError';
}

/** A record refers to bytes that were not found: not in the object store, nor in an export; the record may be sound. */
export class BlobMissingError extends RecordUnreadableError {
  override readonly name = 'BlobMissingError';
  override readonly code = 'blob_missing';
}

/** The stream reports a message that none of its replicas serves: a replica is damaged, or the message is lost. */
export class RecordNotServedError extends RecordUnreadableError {
  override readonly name = 'RecordNotServedError';
  readonly stream: string;
  /** The message's sequence in the stream; null where only its subject is known. */
  readonly seq: number | null;
  constructor(stream: string, subject: string, seq: number | null) {
    const what = seq === null ? `messages on ${subject}` : `message ${seq} on ${subject}`;
    super(`stream ${stream} reports ${what}, and no replica serves it; cox doctor names the damaged replica`);
    this.stream = stream;
    this.seq = seq;
  }
}

/** The session was deleted: its journal contains only a tombstone. */
export class SessionDeletedError extends RecordUnreadableError {
  override readonly name = 'SessionDeletedError';
  override readonly code = 'session_deleted';
  /** With the names of TypeScript. */
  readonly tombstone: CamelCased<Tombstone>;

  /** @param tombstone in the form of the wire. */
  constructor(tombstone: Tombstone) {
    super(deletionSentence(tombstone));
    this.tombstone = fromWire(Tombstone, tombstone);
  }
}

/** Finds the text of a large field by its reference. `undefined` where it cannot be had. */
export type BlobText = (ref: BlobRef) => string | undefined;

/**
 * Reads a record's bytes. Large fields, which its `blobs` member points at (RFC 6901 pointers), are put back in place;
 * without `blobText` a note stands for each. A record of an earlier version is read on into today's.
 * @throws RecordUnreadableError naming the member that does not fit, or the blob that is missing; SessionDeletedError
 *   for a tombstone.
 */
export function decodeRecord(
  bytes: Uint8Array,
  blobText: BlobText = blobNote,
  upcasts: ReadonlyMap<number, Upcast> = UPCASTS,
): JournalRecord {
  const value = readWhole(bytes, blobText, upcasts);
  const parsed = JournalRecord.safeParse(value);
  if (parsed.success) return parsed.data as JournalRecord;
  // Once more, for the words: records are read far too often to be read with words the first time.
  const told = readStrictly(JournalRecord, value);
  const problems = told.ok ? [] : problemSentences(told.problems);
  throw new RecordUnreadableError(`${nameOf(value)} does not fit version ${RECORD_VERSION}: ${problems.join('; ')}`);
}

/**
 * As {@link decodeRecord}, for bytes that were read so before and are the same still, as a hash says: they are not held
 * against the schema once more, which takes most of the time.
 * @throws RecordUnreadableError where they are no record at all, or a blob is missing.
 */
export function decodeRecordAgain(
  bytes: Uint8Array,
  blobText: BlobText = blobNote,
  upcasts: ReadonlyMap<number, Upcast> = UPCASTS,
): JournalRecord {
  return readWhole(bytes, blobText, upcasts) as unknown as JournalRecord;
}

function readWhole(bytes: Uint8Array, blobText: BlobText, upcasts: ReadonlyMap<number, Upcast>): RawRecord {
  const stored = withLargeFields(parseStored(bytes, upcasts), blobText);
  const value = readOn(stored, RECORD_VERSION, upcasts);
  return value;
}

/**
 * A record's parsed JSON with its large fields put back in place, and without the member that points at them.
 * @param which the pointers that matter; the others are left as they are.
 * @throws RecordUnreadableError where one of them points at nothing, or its text cannot be had.
 */
export function withLargeFields(
  { blobs = [], ...value }: StoredJson,
  blobText: BlobText,
  which: (pointer: string) => boolean = () => true,
): Record<string, unknown> {
  for (const pointer of blobs) if (which(pointer)) putBack(value, pointer, blobText);
  return value;
}

/** The large fields that a record's bytes refer to. Throws RecordUnreadableError as {@link decodeRecord} does. */
export function blobRefsOf(bytes: Uint8Array, upcasts: ReadonlyMap<number, Upcast> = UPCASTS): readonly BlobRef[] {
  const { blobs, ...value } = parseStored(bytes, upcasts);
  return (blobs ?? []).map((pointer) => {
    const { parent, key } = locate(value, pointer);
    return blobRefAt(parent[key], pointer);
  });
}

/** A record as it is stored: JSON, with pointers at what lies apart. */
export type StoredJson = { blobs?: readonly string[] } & RawRecord;

// A byte order mark is not passed over: it is no byte of any record that was written.
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function parseStored(bytes: Uint8Array, upcasts: ReadonlyMap<number, Upcast>): StoredJson {
  const tombstone = tombstoneIn(bytes);
  if (tombstone) throw new SessionDeletedError(tombstone);
  let value: unknown;
  try {
    value = JSON.parse(utf8.decode(bytes));
  } catch (error) {
    if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf)
      throw new RecordUnreadableError('a record begins with a byte order mark: it was changed');
    throw new RecordUnreadableError(`a record is not JSON: ${(error as Error).message}`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new RecordUnreadableError('a record is not a JSON object');
  const { v: version, blobs } = value as StoredJson;
  if (typeof version !== 'number' || !isReadOn(version, RECORD_VERSION, upcasts)) {
    const message = `${nameOf(value)} is of version ${String(version)}, which is not known to this release`;
    throw typeof version === 'number' ? new RecordVersionUnknownError(message) : new RecordUnreadableError(message);
  }
  if (blobs !== undefined && !z.array(z.string()).max(4_096).safeParse(blobs).success) {
    throw new RecordUnreadableError('blobs is not a list of pointers');
  }
  return value as StoredJson;
}

/** What people find it by in its journal. */
function nameOf(value: object): string {
  const { n } = value as { n?: unknown };
  return Number.isSafeInteger(n) ? `record ${n}` : 'a record';
}

function putBack(value: Record<string, unknown>, pointer: string, blobText: BlobText): void {
  const { parent, key } = locate(value, pointer);
  const ref = blobRefAt(parent[key], pointer);
  const text = blobText(ref);
  if (text === undefined)
    throw new BlobMissingError(`the bytes of ${pointer} in ${nameOf(value)} (sha256 ${ref.sha256}) are missing`);
  parent[key] = text;
}

function blobRefAt(value: unknown, pointer: string): BlobRef {
  const ref = BlobRef.safeParse(value);
  if (!ref.success) throw new RecordUnreadableError(`${pointer} is not a blob reference`);
  return ref.data;
}

function locate(value: Record<string, unknown>, pointer: string): { parent: Record<string, unknown>; key: string } {
  const keys = pointerKeys(pointer);
  const key = keys.pop();
  let parent: unknown = value;
  for (const step of keys) {
    if (typeof parent !== 'object' || parent === null || !Object.hasOwn(parent, step)) parent = undefined;
    else parent = (parent as Record<string, unknown>)[step];
  }
  if (key === undefined || typeof parent !== 'object' || parent === null || !Object.hasOwn(parent, key)) {
    throw new RecordUnreadableError(`${pointer} points at nothing`);
  }
  return { parent: parent as Record<string, unknown>, key };
}

function blobNote(ref: BlobRef): string {
  return `[${ref.bytes} bytes, stored apart: sha256 ${ref.sha256}]`;
}
