/**
 * The inputs of a copied session, a fork or an import: those of the origin's journal. The copy recomputes all events
 * from them. The first record of the copy names the origin. So any host can continue an unfinished fork, and a
 * repetition of the import can continue an unfinished import.
 *
 * COPY-1  An origin is copied only if its journal replays byte for byte, for a fork up to the last copied record.
 * COPY-2  The copy leaves out the address of each receipt, the member `copied_from` of the origin's inputs, and the inbox
 *         position of each record. Its first record has the member `copied_from` (`CopyOrigin`): the origin and the
 *         newest `originsNamedMax` earlier origins, and in a fork its command, changes and the address of its receipt.
 *         That record also holds the inbox position of the fork's command.
 * COPY-3  Until the copy is complete and owned, the session starts no effect and accepts no command.
 */
import type { Blobs, Journal } from '@coxswain/ports';
import { BOUNDS, type CopyOrigin, type ErrorCode, type Input, type JournalRecord } from '@coxswain/protocol';
import { sha256Hex } from './append-record.ts';
import { type BeforeRecord, changeRecord } from './change-record.ts';
import { readRecord } from './load-session.ts';
import { OriginAwayError, type OriginRecords } from './origin-records.ts';

/**
 * The ports of a fork. It reads the origin from both, and writes to `blobs` one kind of content: a changed result that
 * exceeds the output limit of its tool.
 */
export interface CopyPorts {
  readonly journal: Journal;
  readonly blobs: Blobs;
}

/** Codes of errors of the origin's content. Any other error means that the origin cannot be read at present. */
const UNFIT: ReadonlySet<string> = new Set<ErrorCode>([
  'replay_diverged',
  'record_unreadable',
  'blob_missing',
  'machine_version_unknown',
  'session_deleted',
]);

/** Whether this code means that the origin's content cannot be copied, so that a retry does not help. */
export function isUnfit(code: string | undefined): code is ErrorCode {
  return code !== undefined && UNFIT.has(code);
}

/** An input for the copy, with the time of the origin's record. */
export interface CopiedInput {
  readonly n: number;
  readonly at: string;
  readonly input: Input;
}

/** The fork cannot be completed: since it started, its origin was changed or deleted, or became unreadable. */
export class OriginGoneError extends Error {
  readonly code = 'fork_origin_gone';
}

/**
 * The inputs of a fork after record `after`, in order, up to the last copied record. The last input has the changes.
 * @param before the state of the copy so far, from which changes are computed.
 * @throws OriginGoneError where the origin no longer fits; OriginAwayError where it cannot be read at present.
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

/**
 * The input of a copy, without the parts that COPY-2 leaves out.
 * @param copy the origin of the copy, for the input of its first record only.
 */
export function buildCopyInput(input: Input, copy: CopyOrigin | undefined): Input {
  if (input.type !== 'command') return input;
  const { receipt_to: _, copied_from: __, ...own } = input;
  return copy ? { ...own, copied_from: copy } : own;
}

/** The earlier origins, which the origin's first record names: the newest first, at most `originsNamedMax`. */
export function lineage({ input }: JournalRecord): Pick<CopyOrigin, 'before'> {
  const from = input.type === 'command' ? input.copied_from : undefined;
  if (!from) return {};
  const { session, n, hash, before = [] } = from;
  return { before: [{ session, n, hash }, ...before].slice(0, BOUNDS.originsNamedMax) };
}
