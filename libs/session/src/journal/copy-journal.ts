/**
 * Copies: the inputs of one session's journal put to another session, which recomputes everything that follows from
 * them. What is said of the origin stands in the first record of the copy, so whoever finds it unfinished goes on.
 *
 * COPY-1  An origin is copied only if its journal replays, byte for byte, up to the record at which is forked.
 * COPY-2  What an input says of others than the session itself is left out: who waits for a receipt, and the place in an
 *     inbox. The fork's own command stands in its first record, with the place that it had.
 * COPY-3  Until the copy is whole and owned, the session begins no effect and takes no command.
 */
import type { Blobs, Journal } from '@coxswain/ports';
import { BOUNDS, type CopyOrigin, type ErrorCode, type Input, type JournalRecord } from '@coxswain/protocol';
import { type BeforeRecord, changeRecord } from './change-record.ts';
import { readRecord } from './load-session.ts';
import { OriginAwayError, type OriginRecords } from './origin-records.ts';
import { sha256Hex } from './seal-record.ts';

/** What copying reads and, for results that are too large for a record, writes. */
export interface CopyPorts {
  readonly journal: Journal;
  readonly blobs: Blobs;
}

/** What is wrong with an origin itself, and not with reaching it. */
const UNFIT: ReadonlySet<string> = new Set<ErrorCode>([
  'replay_diverged',
  'record_unreadable',
  'blob_missing',
  'machine_version_unknown',
  'session_deleted',
]);

/** Whether an error is of an origin that cannot be copied, and not of one that cannot be reached now. */
export function isUnfit(code: string | undefined): code is ErrorCode {
  return code !== undefined && UNFIT.has(code);
}

/** One record to be made: the input, and when the origin's was made. */
export interface CopiedInput {
  readonly n: number;
  readonly at: string;
  readonly input: Input;
}

/** The origin is not there any more as it was when the copy began. */
export class OriginGoneError extends Error {
  readonly code = 'fork_origin_gone';
}

/**
 * The inputs of a copy after record `after`, in order.
 * @param before the session as the copy is so far: what changes are worked out from.
 * @throws OriginGoneError where the origin is not what it was; OriginAwayError where it cannot be read now.
 */
export async function* copiedInputs(
  blobs: Blobs,
  origin: OriginRecords,
  copy: CopyOrigin,
  after: number,
  before: () => Omit<BeforeRecord, 'blobs'>,
): AsyncGenerator<CopiedInput, void, undefined> {
  // Whoever goes on with a copy has not looked at the origin yet.
  if (after > 0) await checkOrigin(origin, copy);
  let n = 0;
  for await (const bytes of origin.read()) {
    n++;
    if (n <= after) continue;
    const record = await readOrGone(bytes, blobs, n);
    const input = n === copy.n ? await changedInput(record, copy, { ...before(), blobs }) : record.input;
    yield { n, at: record.at, input: ofItself(input, n === 1 ? copy : undefined) };
    if (n === copy.n) return;
  }
  throw new OriginGoneError(`${copy.session} has ${n} records, but the copy needs ${copy.n}`);
}

async function checkOrigin(origin: OriginRecords, copy: CopyOrigin): Promise<void> {
  let n = 0;
  for await (const bytes of origin.read()) {
    if (++n < copy.n) continue;
    if (sha256Hex(bytes) === copy.hash) return;
    throw new OriginGoneError(`record ${n} of ${copy.session} has changed`);
  }
  throw new OriginGoneError(`${copy.session} has ${n} records, but the copy needs ${copy.n}`);
}

async function readOrGone(bytes: Uint8Array, blobs: Blobs, n: number): Promise<JournalRecord> {
  try {
    const record = await readRecord(bytes, blobs);
    if (record.n === n) return record;
    throw new OriginGoneError(`record ${n} is missing`);
  } catch (error) {
    const { code, message } = error as Error & { code?: string };
    if (isUnfit(code)) throw new OriginGoneError(message);
    throw error instanceof OriginGoneError ? error : new OriginAwayError(message, { cause: error });
  }
}

async function changedInput(record: JournalRecord, { changes }: CopyOrigin, before: BeforeRecord): Promise<Input> {
  if (!changes) return record.input;
  const changed = await changeRecord(record, changes, before);
  if ('problem' in changed) throw new OriginGoneError(changed.problem.message);
  return changed.input;
}

/** An input without what it says of others than its session (COPY-2), and with its origin if it is the first. */
export function ofItself(input: Input, copy: CopyOrigin | undefined): Input {
  if (input.type !== 'command') return input;
  const { receipt_to: _, copied_from: __, ...own } = input;
  return copy ? { ...own, copied_from: copy } : own;
}

/** Where an origin comes from itself, by its first record. */
export function lineage({ input }: JournalRecord): Pick<CopyOrigin, 'before'> {
  const from = input.type === 'command' ? input.copied_from : undefined;
  if (!from) return {};
  const { session, n, hash, before = [] } = from;
  return { before: [{ session, n, hash }, ...before].slice(0, BOUNDS.originsNamedMax) };
}
