/**
 * Imports: an exported journal becomes a session. All of it is checked before any of it is written: every record must be
 * readable, chain to the one before it, and come out the same, byte for byte, when it is computed again. The closing line of
 * the export must match the last record; an export without one is imported, and its tail is unproven.
 *
 * An import keeps its id, or is given another one, as a fork is. Either way it has a chain of its own, for what its
 * records say of the bus that they come from (inbox positions, who waits for receipts) is left out.
 */
import type { Blobs, Clock, Journal, StoredRecord } from '@coxswain/ports';
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
import { commit } from './commit.ts';
import { lineage, ofItself } from './copy-journal.ts';
import { ExportedJournal } from './exported-journal.ts';
import { ChainBrokenError, readRecord } from './load-session.ts';
import { JournalReplay } from './replay-journal.ts';
import { buildRecord, type SealedRecord, sealRecord } from './seal-record.ts';

/** What importing reads and writes. */
export interface ImportPorts {
  readonly journal: Journal;
  readonly blobs: Blobs;
  readonly clock: Clock;
}

/** What is imported, and as what. */
export interface ImportRequest {
  /** The lines of the export; called twice: to check them, and to write what they say. */
  readonly lines: () => AsyncIterable<Uint8Array>;
  readonly tenant: string;
  /** Another id for the session. */
  readonly as?: string | undefined;
}

/** What was imported. */
export interface Imported {
  readonly ref: SessionRef;
  /** The session as the export names it. */
  readonly origin: string;
  readonly records: number;
  /** Whether the export had a closing line: without one, a change of its last record or missing records do not show. */
  readonly isTailProven: boolean;
}

/** A line of an export cannot be imported. Nothing was written. */
export class ImportRefusedError extends Error {
  readonly code: ErrorCode;
  /** The line, from 1; 0 where it is about no line. */
  readonly line: number;

  constructor(code: ErrorCode, line: number, message: string, cause?: unknown) {
    super(line === 0 ? message : `line ${line}: ${message}`, { cause });
    this.code = code;
    this.line = line;
  }
}

/**
 * Imports a journal. One that was broken off goes on where it stands.
 * @throws ImportRefusedError before anything is written; with the code `session_exists` where the id is not free, and
 * `journal_unavailable` where the store gave no answer: import it again.
 */
export async function importJournal(ports: ImportPorts, { lines, tenant, as }: ImportRequest): Promise<Imported> {
  const checked = await check(lines(), ports.blobs);
  const ref = sessionRef(as ?? checked.copy.session, tenant);
  // A deletion that is not finished keeps records before its tombstone.
  const newest = await ports.journal.last(ref);
  if (newest && tombstoneIn(newest.bytes)) throw taken(ref, newest.bytes);
  const written = ports.journal.read(ref)[Symbol.asyncIterator]();
  let fence = 0;
  let appended = 0;
  for await (const sealed of recomputed(lines(), checked, ref)) {
    const stands: IteratorResult<StoredRecord, void> = appended > 0 ? DONE : await written.next();
    if (!stands.done) {
      // An import that was broken off has written these very bytes; anything else is another session.
      if (Buffer.compare(stands.value.bytes, sealed.bytes) !== 0) throw taken(ref, stands.value.bytes);
      fence = stands.value.fence;
      continue;
    }
    if (appended === 0) for (const [sha256, bytes] of checked.exported.blobs) await ports.blobs.put(sha256, bytes);
    for (const { sha256, bytes } of sealed.blobs) await ports.blobs.put(sha256, bytes);
    const result = await commit(ports.journal, ports.clock, ref, sealed, fence, () => false);
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

/** The records under the session's id, with a chain of their own. */
async function* recomputed(
  lines: AsyncIterable<Uint8Array>,
  { copy, exported }: Checked,
  ref: SessionRef,
): AsyncGenerator<SealedRecord, void, undefined> {
  const actor = new SessionActor(ref.sessionId);
  let prevHash: string | null = null;
  for await (const bytes of new ExportedJournal(lines).records()) {
    const { n, at, attempt, input, prev_hash } = await readRecord(bytes, exported);
    const own = ofItself(input, n === 1 ? copy : undefined);
    const { events } = actor.step(own, n, Date.parse(at));
    const frame = { sessionId: ref.sessionId, n, attempt, prevHash: prevHash ?? prev_hash, at };
    const sealed = sealRecord(buildRecord(frame, own, events, actor.state));
    prevHash = sealed.hash;
    yield sealed;
  }
}
