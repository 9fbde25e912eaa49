/**
 * The inputs of a copied session: those of the origin's journal. The copy recomputes all events from them. The first record
 * of the copy names the origin, so that any host can continue an unfinished copy.
 *
 * COPY-1  An origin is copied only if its journal replays byte for byte up to the record of the fork.
 * COPY-2  The copy leaves out the address of each receipt, the member `copied_from` of the origin's inputs, and the inbox
 *         position of each record. The first record of the copy names all origins itself (`copied_from.before`), and
 *         contains the fork's own command with its position.
 * COPY-3  Until the copy is complete and owned, the session starts no effect and accepts no command.
 */
import type { Blobs, Journal } from '@coxswain/ports';
import { BOUNDS, type CopyOrigin, type ErrorCode, type Input, type JournalRecord } from '@coxswain/protocol';
import { sha256Hex } from './append-record.ts';
import { type BeforeRecord, changeRecord } from './change-record.ts';
import { readRecord } from './load-session.ts';
import { OriginAwayError, type OriginRecords } from './origin-records.ts';

/** Ports that a copy reads, and writes for results that are too large for a record. */
export interface CopyPorts {
  readonly journal: Journal;
  readonly blobs: Blobs;
}

/** Errors of the origin's content. Any other error means that the origin cannot be read at present. */
const UNFIT: ReadonlySet<string> = new Set<ErrorCode>([
  'replay_diverged',
  'record_unreadable',
  'blob_missing',
  'machine_version_unknown',
  'session_deleted',
]);

/** Whether the error means that this release can never copy the origin. */
export function isUnfit(code: string | undefined): code is ErrorCode {
  return code !== undefined && UNFIT.has(code);
}

/** An input for the copy, with the time of the origin's record. */
export interface CopiedInput {
  readonly n: number;
  readonly at: string;
  readonly input: Input;
}

/** The copy cannot be completed: since it started, its origin was changed or deleted, or became unreadable. */
export class OriginGoneError extends Error {
  readonly code = 'fork_origin_gone';
}

/**
 * The inputs of a copy after record `after`, in order.
 * @param before the state of the copy so far, from which changes are computed.
 * @throws OriginGoneError where the origin changed; OriginAwayError where it cannot be read at present.
 */
export async function* copiedInputs(
  blobs: Blobs,
  origin: OriginRecords,
  copy: CopyOrigin,
  after: number,
  before: () => Omit<BeforeRecord, 'blobs'>,
): AsyncGenerator<CopiedInput, void, undefined> {
  // A host that continues a copy has not checked the origin yet.
  if (after > 0) await checkOrigin(origin, copy);
  let n = 0;
  for await (const bytes of origin.read()) {
    n++;
    if (n <= after) continue;
    const record = await readOrGone(bytes, blobs, n);
    const input = n === copy.n ? await changedInput(record, copy, { ...before(), blobs }) : record.input;
    yield { n, at: record.at, input: buildCopyInput(input, n === 1 ? copy : undefined) };
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

/** The input of a copy, without the parts that COPY-2 leaves out. The first input also gets its origin. */
export function buildCopyInput(input: Input, copy: CopyOrigin | undefined): Input {
  if (input.type !== 'command') return input;
  const { receipt_to: _, copied_from: __, ...own } = input;
  return copy ? { ...own, copied_from: copy } : own;
}

/** The origins of the origin, from its first record. */
export function lineage({ input }: JournalRecord): Pick<CopyOrigin, 'before'> {
  const from = input.type === 'command' ? input.copied_from : undefined;
  if (!from) return {};
  const { session, n, hash, before = [] } = from;
  return { before: [{ session, n, hash }, ...before].slice(0, BOUNDS.originsNamedMax) };
}
