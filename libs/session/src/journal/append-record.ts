/**
 * The way of a record into the journal, in three steps. Replay uses only the first two.
 * 1. {@link buildRecord} composes the record.
 * 2. {@link sealRecord} makes its bytes and their hash.
 * 3. {@link storeRecord} stores its large texts, and then calls {@link appendUntilKnown}.
 *
 * `appendUntilKnown` appends the bytes at a fence (defined in libs/ports, journal.ts). It repeats an append without an
 * answer with the identical bytes. If the journal refuses an append, the first record after the fence decides. It is this
 * record, stored by an earlier try; or it is another one: of another host, of an earlier runner of this host, or a
 * tombstone (RUNNER-10, runner/session-runner.ts).
 */
import { hash } from 'node:crypto';
import type { AppendResult, Blobs, Clock, Journal, StoredRecord } from '@coxswain/ports';
import {
  BOUNDS,
  type Cursor,
  canonicalJson,
  delayAfter,
  deletionSentence,
  escapePointerKey,
  type Input,
  type JournalRecord,
  LARGE_FIELDS_MAX,
  RECORD_VERSION,
  RecordTooLargeError,
  type SessionEvent,
  type SessionRef,
  type StateValue,
  tombstoneIn,
} from '@coxswain/protocol';
import { openEffectIds, type SessionState } from '@coxswain/turn';

/** A record as it is stored, and the blobs to store before it. */
export interface SealedRecord {
  readonly bytes: Uint8Array;
  /** SHA-256 of the bytes in hex: the next record's `prev_hash`. */
  readonly hash: string;
  readonly blobs: readonly { readonly sha256: string; readonly bytes: Uint8Array }[];
}

/** The members of a record, besides its input, that the machine does not compute. */
export interface RecordFrame {
  readonly sessionId: string;
  readonly n: number;
  /** The writer, by its name in stored records: the id of the host, and its generation (`RunnerOptions.host`). */
  readonly attempt: string;
  readonly prevHash: string;
  readonly at: string;
  readonly cursor?: Cursor | undefined;
}

/** Builds the record of one step, from the state after the step. */
export function buildRecord(
  frame: RecordFrame,
  input: Input,
  events: readonly SessionEvent[],
  state: SessionState,
): JournalRecord {
  return {
    v: RECORD_VERSION,
    session_id: frame.sessionId,
    n: frame.n,
    epoch: state.context.epoch,
    attempt: frame.attempt,
    prev_hash: frame.prevHash,
    at: frame.at,
    ...(frame.cursor ? { cursor: frame.cursor } : {}),
    input,
    events,
    state: state.value as StateValue,
    effects_open: openEffectIds(state),
  };
}

/**
 * Seals a record as canonical JSON. Large texts become blobs, which {@link storeRecord} stores.
 * @throws RecordTooLargeError where the record exceeds its bound even so, or would need too many blobs. A command is then
 *   rejected (`SessionIntake.#take`). Any other input fails the run (`SessionLifecycle.failRunAfterError`).
 */
export function sealRecord(record: JournalRecord): SealedRecord {
  const whole = Buffer.from(canonicalJson(record), 'utf8');
  // A record within the bound of one field has no larger field.
  if (whole.length <= BOUNDS.fieldInlineMaxBytes) return withHash(whole, []);
  let smallest = 0;
  // Fields below the bound can exceed the record's bound together: store them as blobs too, largest limits first. A reference
  // has about 100 bytes, so a smaller limit saves nothing.
  for (const limit of [BOUNDS.fieldInlineMaxBytes, 4_096, 512, 128]) {
    const blobs = new Map<string, Uint8Array>();
    const pointers: string[] = [];
    const slim = moveLargeTexts(record, '', limit, blobs, pointers) as object;
    // No reader takes more. A smaller limit gives still more.
    if (pointers.length > LARGE_FIELDS_MAX) break;
    const bytes = Buffer.from(canonicalJson(pointers.length > 0 ? { ...slim, blobs: pointers } : slim), 'utf8');
    smallest = bytes.length;
    if (smallest <= BOUNDS.recordMaxBytes) {
      return withHash(
        bytes,
        [...blobs].map(([sha256, content]) => ({ sha256, bytes: content })),
      );
    }
  }
  throw new RecordTooLargeError(smallest);
}

/** Whether the error means that a record exceeds its bound; the journal throws it too, from another package. */
export function isRecordTooLarge(error: unknown): error is RecordTooLargeError {
  return error instanceof Error && 'code' in error && error.code === 'record_too_large';
}

function withHash(bytes: Uint8Array, blobs: SealedRecord['blobs']): SealedRecord {
  return { bytes, hash: sha256Hex(bytes), blobs };
}

/** SHA-256 in hex. */
export function sha256Hex(bytes: Uint8Array | string): string {
  return hash('sha256', bytes, 'hex');
}

/**
 * A copy of a value in which each text of more than `limit` bytes is replaced by a reference to a blob.
 * @param pointer the JSON pointer of the value.
 * @param blobs receives the texts, by their hash.
 * @param pointers receives the JSON pointers of the replaced texts.
 */
function moveLargeTexts(
  value: unknown,
  pointer: string,
  limit: number,
  blobs: Map<string, Uint8Array>,
  pointers: string[],
): unknown {
  if (typeof value === 'string') {
    if (value.length * 3 <= limit) return value;
    const bytes = Buffer.from(value, 'utf8');
    // A text that is not valid UTF-16 (half a surrogate pair) stays in the record, where JSON can escape it.
    if (bytes.length <= limit || bytes.toString('utf8') !== value) return value;
    const sha256 = sha256Hex(bytes);
    blobs.set(sha256, bytes);
    pointers.push(pointer);
    return { sha256, bytes: bytes.length };
  }
  if (Array.isArray(value))
    return value.map((member, index) => moveLargeTexts(member, `${pointer}/${index}`, limit, blobs, pointers));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => {
        const step = `${pointer}/${escapePointerKey(key)}`;
        return [key, moveLargeTexts((value as Record<string, unknown>)[key], step, limit, blobs, pointers)];
      }),
  );
}

/** The stores of a record. */
export interface RecordPorts {
  readonly journal: Journal;
  readonly blobs: Blobs;
  readonly clock: Clock;
}

/**
 * Stores the large texts of a record as blobs, then appends the record at a fence. Both are repeated within `bounds`.
 * `JournalWriter.#appendOrLeave` calls it for each record and tombstone.
 * @param hasLeft whether the runner has left the session meanwhile: then nothing more is sent.
 * @returns how the append ended. A store that fails or does not answer is the result `unavailable`, not an exception.
 * @throws RecordTooLargeError if the journal does not take a record of this size.
 */
export async function storeRecord(
  { journal, blobs, clock }: RecordPorts,
  ref: SessionRef,
  sealed: SealedRecord,
  fence: number,
  hasLeft: () => boolean,
  bounds: AppendBounds,
): Promise<StoreResult> {
  // Before the record that refers to them, so that a journal never refers to a missing blob.
  const failed = sealed.blobs.length > 0 ? await repeat(() => storeBlobs(blobs, sealed), clock, hasLeft, bounds) : null;
  if (failed !== null) return { status: 'unavailable', cause: `the object store: ${failed}` };
  if (hasLeft()) return { status: 'unavailable', cause: 'this host released the session' };
  return appendUntilKnown(journal, clock, ref, sealed, fence, hasLeft, bounds);
}

/** Stores the blobs of a record. @returns the failure, or null. */
async function storeBlobs(blobs: Blobs, sealed: SealedRecord): Promise<string | null> {
  try {
    for (const blob of sealed.blobs) await blobs.put(blob.sha256, blob.bytes);
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}

/** Repeats a function while it returns a failure as text, within the bounds. @returns its result, or the last failure. */
async function repeat<T extends object | null>(
  attempt: () => Promise<T | string>,
  clock: Clock,
  hasLeft: () => boolean,
  { attemptsMax, firstDelayMs, maxDelayMs }: AppendBounds,
): Promise<T | string> {
  for (let tries = 1; ; tries++) {
    const result = await attempt();
    if (typeof result !== 'string' || tries >= attemptsMax || hasLeft()) return result;
    await clock.sleep(delayAfter(tries, { firstMs: firstDelayMs, maxMs: maxDelayMs }));
    // The runner may have left the session during the pause (RUNNER-10, runner/session-runner.ts).
    if (hasLeft()) return result;
  }
}

/**
 * How {@link storeRecord} or {@link appendUntilKnown} ended. `foreign`: another record is at this position, of another
 * host or of an earlier runner of this host; `attempt` is its writer. `deleted`: a tombstone is at this position.
 * `unavailable`: the record may be stored, or was not sent; the session must be loaded again before it continues.
 */
export type StoreResult =
  | { readonly status: 'stored'; readonly fence: number }
  | { readonly status: 'foreign'; readonly attempt: string }
  | { readonly status: 'deleted'; readonly message: string }
  | { readonly status: 'unavailable'; readonly cause: string };

/** Bounds for retries of an append, and before it of the blobs of the record. */
export interface AppendBounds {
  readonly attemptsMax: number;
  readonly firstDelayMs: number;
  readonly maxDelayMs: number;
}

/**
 * About one minute of pauses, without the time of the attempts: longer than a leader election of a stream, short enough
 * for a person who waits. {@link storeRecord} applies the bounds twice, to the blobs of a record and then to its
 * append: with blobs, about two minutes. After the last attempt the runner leaves the session
 * (`JournalWriter.#appendOrLeave`), and the host claims it again with back-off (`Host.#wakeAfterBackOff`).
 */
export const APPEND_BOUNDS: AppendBounds = { attemptsMax: 40, firstDelayMs: 25, maxDelayMs: 2_000 };

/**
 * Appends sealed bytes at a fence, and repeats the append within `bounds` while the outcome is unknown, unless
 * `hasLeft` says that the caller has given up. If the journal refuses an append, an earlier attempt may have stored the
 * bytes ({@link resolveRefusedAppend}). A failure of the journal is a result, not an exception.
 * @throws RecordTooLargeError if the journal does not take a record of this size.
 */
export async function appendUntilKnown(
  journal: Journal,
  clock: Clock,
  ref: SessionRef,
  sealed: { readonly bytes: Uint8Array; readonly hash: string },
  fence: number,
  hasLeft: () => boolean,
  bounds: AppendBounds = APPEND_BOUNDS,
): Promise<StoreResult> {
  const attempt = async (): Promise<StoreResult | string> => {
    const result = await appendOnce(journal, ref, sealed.bytes, fence);
    if (result.status === 'stored') return result;
    if (result.status === 'ambiguous') return result.cause;
    const settled = await resolveRefusedAppend(journal, ref, sealed.hash, fence);
    return settled ?? 'the append was rejected, and the conflicting record cannot be read';
  };
  const result = await repeat(attempt, clock, hasLeft, bounds);
  return typeof result === 'string' ? { status: 'unavailable', cause: result } : result;
}

// One append. A closed adapter rejects it: like a missing answer, that says nothing about the record.
async function appendOnce(journal: Journal, ref: SessionRef, bytes: Uint8Array, fence: number): Promise<AppendResult> {
  try {
    return await journal.append(ref, bytes, fence);
  } catch (error) {
    if (isRecordTooLarge(error)) throw error;
    return { status: 'ambiguous', cause: (error as Error).message };
  }
}

/**
 * The result of a refused append, by the first record after the fence. Null if there is none, or if it cannot be read.
 */
async function resolveRefusedAppend(
  journal: Journal,
  ref: SessionRef,
  hash: string,
  fence: number,
): Promise<StoreResult | null> {
  let first: StoredRecord | null;
  try {
    first = await journal.firstAfter(ref, fence);
  } catch {
    // The leader is unreachable. The next attempt finds out.
    return null;
  }
  if (first === null) return null;
  if (sha256Hex(first.bytes) === hash) return { status: 'stored', fence: first.fence };
  return conflictOf(first.bytes);
}

/** The result for an append that found this record at its position: a tombstone, or another record with its writer. */
export function conflictOf(bytes: Uint8Array): Extract<StoreResult, { status: 'foreign' | 'deleted' }> {
  const tombstone = tombstoneIn(bytes);
  if (tombstone) return { status: 'deleted', message: deletionSentence(tombstone) };
  return { status: 'foreign', attempt: writerOf(bytes) };
}

/** The writer of a record (`attempt`): the id of the host, and its generation. */
function writerOf(bytes: Uint8Array): string {
  try {
    const { attempt } = JSON.parse(Buffer.from(bytes).toString('utf8')) as { attempt?: unknown };
    return typeof attempt === 'string' ? attempt : '';
  } catch {
    // The bytes are not a record of Coxswain.
    return '';
  }
}
