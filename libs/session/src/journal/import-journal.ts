/**
 * Imports an exported journal as a session. The import checks the whole export before it writes: each record must be
 * readable, must chain to its predecessor, and must replay byte for byte. The closing line must match the number of
 * records and the last one. An export without a closing line is imported, with an unproven end.
 *
 * The imported session keeps the id of the export or gets a new one. In both cases it gets its own hash chain: its
 * first record names the origin, and its records leave out what concerns the old bus, inbox positions and addresses of
 * receipts.
 */
import type { Blobs, Clock, Journal, SessionIndex, StoredRecord } from '@coxswain/ports';
import {
  type CopyOrigin,
  deletionSentence,
  type ErrorCode,
  isErrorCode,
  type JournalRecord,
  type SessionRef,
  sessionRef,
  tombstoneIn,
} from '@coxswain/protocol';
import { SessionActor } from '@coxswain/turn';
import { appendUntilKnown, buildRecord, type SealedRecord, sealRecord } from './append-record.ts';
import { buildCopyInput, lineage } from './copy-journal.ts';
import { ChainBrokenError, readRecord } from './load-session.ts';
import { ExportedJournal } from './read-export.ts';
import { JournalReplay } from './replay-journal.ts';

/** Ports that an import reads and writes. */
export interface ImportPorts {
  readonly journal: Journal;
  readonly blobs: Blobs;
  readonly clock: Clock;
  /** Without it, lists are read from the journals. */
  readonly index?: SessionIndex | undefined;
}

/** One import. */
export interface ImportRequest {
  /**
   * The lines of the export. Called once to check them, then again to write the session: each call must give all lines.
   */
  readonly lines: () => AsyncIterable<Uint8Array>;
  readonly tenant: string;
  /** A new id for the session. Without it, the session keeps its id in the export. */
  readonly as?: string | undefined;
}

/** The result of an import. */
export interface Imported {
  readonly ref: SessionRef;
  /** The session's id in the export. */
  readonly origin: string;
  readonly records: number;
  /**
   * Whether the export has a closing line. Without it, a changed last record and missing last records are not detected.
   */
  readonly isTailProven: boolean;
}

/**
 * The import was refused. If a check of the export failed, or the id was in use before, nothing was written.
 * {@link importJournal} names the codes that may follow written records.
 */
export class ImportRefusedError extends Error {
  readonly code: ErrorCode;
  /** The line's number, from 1; 0 where the error concerns no line. */
  readonly line: number;

  constructor(code: ErrorCode, line: number, message: string, cause?: unknown) {
    super(line === 0 ? message : `line ${line}: ${message}`, { cause });
    this.code = code;
    this.line = line;
  }
}

/**
 * Imports a journal. A repetition continues an unfinished import.
 * @throws ImportRefusedError before anything is written: with the code of the failed check, or `session_exists` or
 *   `session_deleted` where the id is in use, also by the complete import of the same export. While records are
 *   written: `journal_unavailable` where the store did not answer (repeat the import), or `session_exists` or
 *   `session_deleted` where another writer took the id meanwhile.
 * @throws RecordTooLargeError where a record exceeds its bound in the new session; errors of the ports and of `lines`.
 */
export async function importJournal(ports: ImportPorts, { lines, tenant, as }: ImportRequest): Promise<Imported> {
  const checked = await check(lines(), ports.blobs);
  const ref = sessionRef(as ?? checked.copy.session, tenant);
  // An unfinished deletion has records before its tombstone.
  const newest = await ports.journal.last(ref);
  if (newest && tombstoneIn(newest.bytes)) throw taken(ref, newest.bytes);
  const written = ports.journal.read(ref)[Symbol.asyncIterator]();
  let fence = 0;
  let appended = 0;
  for await (const sealed of recomputed(lines(), checked, ref)) {
    const stands: IteratorResult<StoredRecord, void> = appended > 0 ? DONE : await written.next();
    if (!stands.done) {
      // An unfinished import has written identical bytes. Other bytes belong to another session.
      if (Buffer.compare(stands.value.bytes, sealed.bytes) !== 0) throw taken(ref, stands.value.bytes);
      fence = stands.value.fence;
      continue;
    }
    if (appended === 0) for (const [sha256, bytes] of checked.exported.blobs) await ports.blobs.put(sha256, bytes);
    for (const { sha256, bytes } of sealed.blobs) await ports.blobs.put(sha256, bytes);
    if (appended === 0) await ports.index?.mark(ref);
    const result = await appendUntilKnown(ports.journal, ports.clock, ref, sealed, fence, () => false);
    if (result.status === 'foreign') throw taken(ref);
    if (result.status === 'deleted') throw new ImportRefusedError('session_deleted', 0, result.message);
    if (result.status === 'unavailable') throw new ImportRefusedError('journal_unavailable', 0, result.cause);
    fence = result.fence;
    appended++;
  }
  if (appended === 0) throw taken(ref);
  const { copy, exported } = checked;
  return { ref, origin: copy.session, records: copy.n, isTailProven: exported.isTailProven };
}

const DONE = { done: true, value: undefined } as const;

function taken({ sessionId }: SessionRef, bytes: Uint8Array = new Uint8Array()): ImportRefusedError {
  const tombstone = tombstoneIn(bytes);
  if (tombstone) return new ImportRefusedError('session_deleted', 0, `${deletionSentence(tombstone)}; use another id`);
  return new ImportRefusedError('session_exists', 0, `there is already a session ${sessionId}; use another id`);
}

interface Checked {
  readonly copy: CopyOrigin;
  readonly exported: ExportedJournal;
}

async function check(lines: AsyncIterable<Uint8Array>, elsewhere: Pick<Blobs, 'get'>): Promise<Checked> {
  const exported = new ExportedJournal(lines, elsewhere);
  const replay = new JournalReplay(exported);
  let first: JournalRecord | null = null;
  try {
    for await (const bytes of exported.records()) {
      const record = await readRecord(bytes, exported);
      follows(record, replay);
      await replay.take(bytes, record);
      first ??= record;
    }
  } catch (error) {
    const { code, message } = error as Error & { code?: string };
    if (code === undefined || !isErrorCode(code)) throw error;
    throw new ImportRefusedError(code, exported.line, message, error);
  }
  if (!first) throw new ImportRefusedError('record_unreadable', 0, 'the journal contains no record');
  const { sessionId, n, hash } = replay;
  return { copy: { how: 'import', session: sessionId, n, hash, ...lineage(first) }, exported };
}

function follows(record: JournalRecord, replay: JournalReplay): void {
  const is = `it is record ${record.n} of ${record.session_id}`;
  if (record.n !== replay.n + 1) throw new ChainBrokenError(`${is}, but record ${replay.n + 1} is expected here`);
  if (replay.n > 0 && record.session_id !== replay.sessionId)
    throw new ChainBrokenError(`${is}, but this is the journal of ${replay.sessionId}`);
  if (record.prev_hash !== replay.hash)
    throw new ChainBrokenError(`${is}, but its hash does not chain to the previous record: one of the two was changed`);
}

/** The records of the imported session, with their own hash chain. */
async function* recomputed(
  lines: AsyncIterable<Uint8Array>,
  { copy, exported }: Checked,
  ref: SessionRef,
): AsyncGenerator<SealedRecord, void, undefined> {
  const actor = new SessionActor(ref.sessionId);
  let prevHash: string | null = null;
  for await (const bytes of new ExportedJournal(lines).records()) {
    const { n, at, attempt, input, prev_hash } = await readRecord(bytes, exported);
    const own = buildCopyInput(input, n === 1 ? copy : undefined);
    const { events } = actor.step(own, n, Date.parse(at));
    const frame = { sessionId: ref.sessionId, n, attempt, prevHash: prevHash ?? prev_hash, at };
    const sealed = sealRecord(buildRecord(frame, own, events, actor.state));
    prevHash = sealed.hash;
    yield sealed;
  }
}
