/** Builds and seals records as bytes; the runner and replay share it. */
import { hash } from 'node:crypto';
import {
  BOUNDS,
  type Cursor,
  canonicalJson,
  escapePointerKey,
  type Input,
  type JournalRecord,
  RECORD_VERSION,
  RecordTooLargeError,
  type SessionEvent,
  type StateValue,
} from '@coxswain/protocol';
import { openEffectIds, type SessionState } from '@coxswain/turn';

/** A record as it is stored, and the blobs to store before it. */
export interface SealedRecord {
  readonly bytes: Uint8Array;
  /** SHA-256 of the bytes in hex: the next record's `prev_hash`. */
  readonly hash: string;
  readonly blobs: readonly { readonly sha256: string; readonly bytes: Uint8Array }[];
}

/** The members of a record that the machine does not compute. */
export interface RecordFrame {
  readonly sessionId: string;
  readonly n: number;
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
 * Seals a record: canonical JSON, with large texts stored as blobs.
 * @throws RecordTooLargeError where the record exceeds its bound even so.
 */
export function sealRecord(record: JournalRecord): SealedRecord {
  const whole = Buffer.from(canonicalJson(record), 'utf8');
  // A record within the bound of one field has no larger field.
  if (whole.length <= BOUNDS.fieldInlineMaxBytes) return sealed(whole, []);
  let smallest = 0;
  // Fields below the bound can exceed the record's bound together: store them as blobs too, largest limits first. A reference
  // has about 100 bytes, so a smaller limit saves nothing.
  for (const limit of [BOUNDS.fieldInlineMaxBytes, 4_096, 512, 128]) {
    const blobs = new Map<string, Uint8Array>();
    const pointers: string[] = [];
    const slim = setApart(record, '', limit, blobs, pointers) as object;
    const bytes = Buffer.from(canonicalJson(pointers.length > 0 ? { ...slim, blobs: pointers } : slim), 'utf8');
    smallest = bytes.length;
    if (smallest <= BOUNDS.recordMaxBytes) {
      return sealed(
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

function sealed(bytes: Uint8Array, blobs: SealedRecord['blobs']): SealedRecord {
  return { bytes, hash: sha256Hex(bytes), blobs };
}

/** SHA-256 in hex. */
export function sha256Hex(bytes: Uint8Array | string): string {
  return hash('sha256', bytes, 'hex');
}

function setApart(
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
    return value.map((member, index) => setApart(member, `${pointer}/${index}`, limit, blobs, pointers));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => {
        const step = `${pointer}/${escapePointerKey(key)}`;
        return [key, setApart((value as Record<string, unknown>)[key], step, limit, blobs, pointers)];
      }),
  );
}
