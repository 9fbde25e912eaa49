/**
 * The record: one journal entry, which is one message on the bus and one commit.
 */
import * as z from 'zod';
import { CoxswainError } from '../catalogues/error-codes.ts';
import { BOUNDS } from '../wire/bounds.ts';
import { type CamelCased, fromWire } from '../wire/casing.ts';
import { BlobRef, pointerKeys } from '../wire/json.ts';
import { problemSentences, readStrictly } from '../wire/schema-problems.ts';
import { SessionEvent } from './events.ts';
import { Input } from './inputs.ts';
import { canUpcast, type RawRecord, UPCASTS, type Upcast, upcastToNewest } from './record-upcasts.ts';
import { deletionSentence, Tombstone, tombstoneIn } from './tombstone.ts';

/** The version that this release writes. It also reads every earlier released version: see `record-upcasts.ts`. */
export const RECORD_VERSION = 1;

/**
 * The position of a session in a command stream. `created` identifies the incarnation of the stream. In a new
 * incarnation the position is 0.
 */
export const Cursor = z.strictObject({ stream: z.string(), created: z.string(), seq: z.number().int().nonnegative() });
export type Cursor = z.infer<typeof Cursor>;

/** The state of the machine after a record: the name of a state, or a state with its child. */
export const StateValue = z.union([z.string(), z.record(z.string(), z.string())]);
export type StateValue = z.infer<typeof StateValue>;

/** One journal entry: one input and all events up to the next wait of the machine. */
export const JournalRecord = z.strictObject({
  v: z.literal(RECORD_VERSION),
  session_id: z.string(),
  /** Dense per session, from 1. */
  n: z.number().int().positive(),
  epoch: z.number().int().positive(),
  /** The id and generation of the host that wrote the record. It distinguishes otherwise equal records of two hosts. */
  attempt: z.string(),
  /**
   * SHA-256 of the bytes of the previous record, hex; 64 zeros in the first record. In libs/session: `sealRecord`
   * (append-record.ts) computes it, `linksOf` (load-session.ts) checks it.
   */
  prev_hash: z.string().regex(/^[0-9a-f]{64}$/),
  /** ISO 8601, from the host's clock, which shows the store's time. A copied record keeps the time of its origin. */
  at: z.iso.datetime(),
  /** The inbox position after this record. Only in records of commands and timers from the inbox. */
  cursor: Cursor.optional(),
  input: Input,
  events: z.array(SessionEvent),
  state: StateValue,
  effects_open: z.array(z.string()),
});
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

/** Maximum number of large fields of one record. */
export const LARGE_FIELDS_MAX = 4_096;

/** A record exceeds its bound. Nothing was appended. */
export class RecordTooLargeError extends Error {
  override readonly name = 'RecordTooLargeError';
  readonly code = 'record_too_large';
  constructor(bytes: number) {
    super(`a record has ${bytes} bytes, at most ${BOUNDS.recordMaxBytes} are kept`);
  }
}

/**
 * A record cannot be read. The class itself: its bytes are not a valid record. Its subclasses have other causes; the record
 * may be intact.
 */
export class RecordUnreadableError extends CoxswainError {
  override readonly name: string = 'RecordUnreadableError';
  override readonly code: 'record_unreadable' | 'blob_missing' | 'session_deleted' = 'record_unreadable';

  constructor(message: string) {
    super('record_unreadable', message);
  }
}

/** The record has a version that this release does not know. Another release wrote it; it is not damaged. */
export class RecordVersionUnknownError extends RecordUnreadableError {
  override readonly name = 'RecordVersionUnknownError';
}

/** The bytes of a large field are missing in the object store or in an export. The record itself may be intact. */
export class BlobMissingError extends RecordUnreadableError {
  override readonly name = 'BlobMissingError';
  override readonly code = 'blob_missing';
}

/** The stream reports a message that none of its replicas returns: a replica is damaged, or the message is lost. */
export class RecordNotServedError extends RecordUnreadableError {
  override readonly name = 'RecordNotServedError';
  readonly stream: string;
  /** The message's sequence in the stream; null if only its subject is known. */
  readonly seq: number | null;
  constructor(stream: string, subject: string, seq: number | null) {
    const what = seq === null ? `messages on ${subject}` : `message ${seq} on ${subject}`;
    super(`stream ${stream} reports ${what}, and no replica serves it; cox doctor names the damaged replica`);
    this.stream = stream;
    this.seq = seq;
  }
}

/** The session was deleted: its journal ends with a tombstone. */
export class SessionDeletedError extends RecordUnreadableError {
  override readonly name = 'SessionDeletedError';
  override readonly code = 'session_deleted';
  /** The tombstone with TypeScript names. */
  readonly tombstone: CamelCased<Tombstone>;

  /** @param tombstone with wire names. */
  constructor(tombstone: Tombstone) {
    super(deletionSentence(tombstone));
    this.tombstone = fromWire(Tombstone, tombstone);
  }
}

/** Finds the text of a large field by its reference; `undefined` if it is not available. */
export type BlobText = (ref: BlobRef) => string | undefined;

/**
 * Reads the bytes of a record. Large fields, which its `blobs` member lists as RFC 6901 pointers, are put back in
 * place; without `blobText` a note replaces each. A record of an earlier version is converted to the newest one.
 * @throws RecordUnreadableError for invalid bytes; the message names an invalid member. Its subclasses:
 *   RecordVersionUnknownError for an unknown version, BlobMissingError for a missing blob, SessionDeletedError for a
 *   tombstone.
 */
export function decodeRecord(
  bytes: Uint8Array,
  blobText: BlobText = blobNote,
  upcasts: ReadonlyMap<number, Upcast> = UPCASTS,
): JournalRecord {
  const value = readWhole(bytes, blobText, upcasts);
  const parsed = JournalRecord.safeParse(value);
  if (parsed.success) return parsed.data as JournalRecord;
  // A second parse, for the messages: records are read too often to create messages the first time.
  const strict = readStrictly(JournalRecord, value);
  const problems = strict.ok ? [] : problemSentences(strict.problems);
  throw new RecordUnreadableError(`${nameOf(value)} does not fit version ${RECORD_VERSION}: ${problems.join('; ')}`);
}

/**
 * Like {@link decodeRecord}, for bytes that were read before, and whose hash shows that they did not change. It skips
 * the validation, which takes most of the time.
 * @throws RecordUnreadableError or a subclass, as {@link decodeRecord}, but not for an invalid member.
 */
export function decodeUnchangedRecord(
  bytes: Uint8Array,
  blobText: BlobText = blobNote,
  upcasts: ReadonlyMap<number, Upcast> = UPCASTS,
): JournalRecord {
  return readWhole(bytes, blobText, upcasts) as unknown as JournalRecord;
}

function readWhole(bytes: Uint8Array, blobText: BlobText, upcasts: ReadonlyMap<number, Upcast>): RawRecord {
  const stored = withLargeFields(parseStored(bytes, upcasts), blobText);
  const value = upcastToNewest(stored, RECORD_VERSION, upcasts);
  return value;
}

/**
 * Puts large fields back into the parsed JSON of a record, and removes its `blobs` member. It modifies nested objects
 * of its argument.
 * @param which selects pointers; other large fields stay references.
 * @throws RecordUnreadableError if a pointer is invalid; its subclass BlobMissingError if a text is not available.
 */
export function withLargeFields(
  { blobs = [], ...value }: StoredJson,
  blobText: BlobText,
  which: (pointer: string) => boolean = () => true,
): Record<string, unknown> {
  for (const pointer of blobs) if (which(pointer)) putBack(value, pointer, blobText);
  return value;
}

/**
 * The large fields that a record's bytes refer to.
 * @throws RecordUnreadableError or a subclass, as {@link decodeRecord}, but not for an invalid member or a missing
 *   blob.
 */
export function blobRefsOf(bytes: Uint8Array, upcasts: ReadonlyMap<number, Upcast> = UPCASTS): readonly BlobRef[] {
  const { blobs, ...value } = parseStored(bytes, upcasts);
  return (blobs ?? []).map((pointer) => {
    const { parent, key } = locate(value, pointer);
    return blobRefAt(parent[key], pointer);
  });
}

/** A record as stored: JSON, with pointers to its large fields. */
export type StoredJson = { blobs?: readonly string[] } & RawRecord;

// A byte order mark is an error: no record starts with one.
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
  if (typeof version !== 'number' || !canUpcast(version, RECORD_VERSION, upcasts)) {
    const message = `${nameOf(value)} is of version ${String(version)}, which is not known to this release`;
    throw typeof version === 'number' ? new RecordVersionUnknownError(message) : new RecordUnreadableError(message);
  }
  if (blobs !== undefined && !z.array(z.string()).max(LARGE_FIELDS_MAX).safeParse(blobs).success) {
    throw new RecordUnreadableError('blobs is not a list of pointers');
  }
  return value as StoredJson;
}

/** The name of a record in messages. */
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
