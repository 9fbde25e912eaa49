/**
 * Loads a session from a snapshot and the journal after it, or from the whole journal. A journal of another machine
 * version loads as long as its events lead to the recorded states (VERSION-3, version.ts in libs/turn).
 */
import type { Blobs, Journal, Publisher, Snapshots, StoredRecord } from '@coxswain/ports';
import {
  blobRefsOf,
  CopyOrigin,
  type Cursor,
  canonicalJson,
  decodeRecord,
  decodeUnchangedRecord,
  GENESIS_HASH,
  type JournalRecord,
  RECORD_VERSION,
  type SessionRef,
  TOMBSTONE_VERSION,
  UPCASTS,
  type Upcast,
  VERSION,
} from '@coxswain/protocol';
import {
  EventNotAcceptedError,
  emptyContext,
  leafOf,
  MACHINE_VERSION,
  SessionActor,
  type SessionState,
  type StoredState,
} from '@coxswain/turn';
import * as z from 'zod';
import { Receipts } from '../runner/send-receipts.ts';
import { Transcript } from '../view/transcript.ts';
import { sha256Hex } from './append-record.ts';
import { unfinishedCopyAfter } from './copy-state.ts';
import { machineOf, otherMachine } from './machine-version.ts';

/** A session as loaded from its journal. */
export interface LoadedSession {
  readonly actor: SessionActor;
  /** Null where only the state was requested and a snapshot made the older records unnecessary. */
  readonly transcript: Transcript | null;
  readonly receipts: Receipts;
  readonly n: number;
  /** Position of the newest record. The next append names it as its fence (libs/ports, journal.ts). */
  readonly fence: number;
  readonly hash: string;
  readonly at: string;
  readonly cursor: Cursor | undefined;
  /** `attempt` of the newest record: the id and generation of the host that wrote it. Empty without records. */
  readonly writer: string;
  /** Number of records after the snapshot; without a snapshot, of all records. */
  readonly tail: number;
  /** The copy that is still unfinished, or null. */
  readonly copy: CopyOrigin | null;
}

/** A session that its host can own. Its transcript may be missing until {@link readTranscript}. */
export type LiveSession = Omit<LoadedSession, 'tail'>;

/** The session's transcript. @throws Error where it was not read yet: a broken invariant. */
export function transcriptOf({ transcript, n }: LiveSession): Transcript {
  if (!transcript) throw new Error(`record ${n}: the transcript is not loaded yet`);
  return transcript;
}

/**
 * A record does not chain to its predecessor or belongs to another session; or the journal does not reach or match its
 * snapshot or the known newest record.
 */
export class ChainBrokenError extends Error {
  readonly code = 'chain_broken';
}

/** The events of a record lead the machine to another state than the recorded one. */
export class FoldDivergedError extends Error {
  readonly code = 'replay_diverged';
}

/** Ports that loading reads. */
export interface LoadPorts {
  readonly journal: Journal;
  readonly snapshots: Snapshots;
  readonly blobs: Blobs;
  readonly publisher: Publisher;
}

/**
 * Version of the snapshot's format. Raise it if a member of the snapshot or of the context changes its form or its
 * meaning. Added and removed members of the context need no new version: `shape` detects them. A snapshot is a cache:
 * one of another version is ignored, and the journal is read from its start.
 */
export const SNAPSHOT_VERSION = 8;
/** The members of the context. A snapshot with other members is ignored. */
const CONTEXT_MEMBERS = Object.keys(emptyContext('')).sort();
const CONTEXT_SHAPE = sha256Hex(Buffer.from(CONTEXT_MEMBERS.join(' '))).slice(0, 16);
const Snapshot = z.strictObject({
  v: z.literal(SNAPSHOT_VERSION),
  shape: z.literal(CONTEXT_SHAPE),
  n: z.number().int().positive(),
  fence: z.number().int().positive(),
  hash: z.string(),
  at: z.string(),
  cursor: z.strictObject({ stream: z.string(), created: z.string(), seq: z.number() }).optional(),
  writer: z.string(),
  copy: CopyOrigin.nullable(),
  receipts: z.record(z.string(), z.string()),
  state: z.custom<StoredState>(isState),
});
type Snapshot = z.infer<typeof Snapshot>;

function isState(value: unknown): boolean {
  const { context } = (value ?? {}) as { context?: unknown };
  return typeof context === 'object' && context !== null && CONTEXT_MEMBERS.every((member) => member in context);
}

/**
 * Loads a session: its state from the newest snapshot and the records after it.
 * @param whole true: reads every record, for the transcript; those up to the snapshot are neither fed to the machine nor
 *   checked by schema, as the snapshot's hash covers them. false: starts at the snapshot's record, so the cost does not
 *   depend on the session's length; without a snapshot reads every record.
 * @param onRecord called for each record read; for some twice, where the snapshot turns out to be unusable.
 * @param newest the fence of the newest record, if the caller has just read it.
 * @throws ChainBrokenError, RecordUnreadableError, FoldDivergedError, EventNotAcceptedError, MachineVersionUnknownError, and
 *   errors of the journal and the object store. A snapshot that cannot be read counts as none.
 */
export async function loadSession(
  ports: LoadPorts,
  ref: SessionRef,
  whole: boolean,
  onRecord: (record: JournalRecord) => void = () => {},
  newest?: number,
): Promise<LoadedSession> {
  // With `whole`, both reads run at the same time, so that a session wakes sooner.
  const all = whole ? requestedAtOnce(ports.journal.read(ref, 0, newest)) : null;
  const snapshot = await newestSnapshot(ports.snapshots, ref);
  if (snapshot === null) return fold(ports, ref, whole, null, all ?? ports.journal.read(ref, 0, newest), onRecord);
  try {
    return await fold(
      ports,
      ref,
      whole,
      snapshot,
      all ?? ports.journal.read(ref, snapshot.fence - 1, newest),
      onRecord,
    );
  } catch {
    // A snapshot is a cache: if the machine or the journal does not continue from it, it is ignored. After an outage of the
    // journal the second read reports the error.
    const loaded = await fold(ports, ref, whole, null, ports.journal.read(ref), onRecord);
    // The snapshot follows an acknowledged record. A journal that ends before that record has lost its end.
    if (loaded.n < snapshot.n)
      throw new ChainBrokenError(
        `the journal of ${ref.sessionId} ends with record ${loaded.n}, and its snapshot was made after record ${snapshot.n}`,
      );
    return loaded;
  }
}

/** The records in order: the first, then the rest. */
async function* firstThenRest(
  first: Promise<IteratorResult<StoredRecord>>,
  rest: AsyncIterator<StoredRecord>,
): AsyncGenerator<StoredRecord, void, undefined> {
  for (let next = await first; !next.done; next = await rest.next()) yield next.value;
}

/** The same records. The first one is requested at once. */
function requestedAtOnce(records: AsyncIterable<StoredRecord>): AsyncIterable<StoredRecord> {
  const iterator = records[Symbol.asyncIterator]();
  const first = iterator.next();
  // The reader gets the error; until then it must not count as unhandled.
  first.catch(() => undefined);
  return firstThenRest(first, iterator);
}

async function fold(
  ports: LoadPorts,
  ref: SessionRef,
  whole: boolean,
  snapshot: Snapshot | null,
  records: AsyncIterable<StoredRecord>,
  onRecord: (record: JournalRecord) => void,
): Promise<LoadedSession> {
  const actor = new SessionActor(ref.sessionId, snapshot?.state);
  const isFromFirst = whole || !snapshot;
  const transcript = isFromFirst ? new Transcript() : null;
  const receipts = new Receipts(ports.publisher, ref, snapshot?.receipts);
  let { n, fence, hash, at, cursor, writer } = snapshot ?? {
    n: 0,
    fence: 0,
    hash: GENESIS_HASH,
    at: '',
    cursor: undefined,
    writer: '',
  };
  let copy: CopyOrigin | null = snapshot?.copy ?? null;
  let machine: number | undefined;
  const known = n;
  let chain: ChainEnd = isFromFirst ? GENESIS : { n: known - 1, hash: null, fence: (snapshot?.fence ?? 1) - 1 };
  const decodeNext = ({ n: last }: ChainEnd) => (last < known ? decodeUnchangedRecord : decodeRecord);
  for await (const { record, stored, end } of linksOf(ports, ref, records, chain, decodeNext)) {
    const isKnown = chain.n < known;
    chain = end;
    machine = machineOf(record) ?? machine;
    for (const event of record.events) transcript?.push(event);
    copy = unfinishedCopyAfter(copy, record, ref.sessionId);
    onRecord(record);
    if (isKnown) {
      if (chain.n === known && (chain.hash !== hash || stored.fence !== fence))
        throw new ChainBrokenError(`record ${known} of ${ref.sessionId} differs from the record of its snapshot`);
      continue;
    }
    const atMs = Date.parse(record.at);
    try {
      for (const event of record.events) actor.send(event, record.n, atMs);
    } catch (error) {
      if (!(error instanceof EventNotAcceptedError)) throw error;
      throw otherMachine(record.n, machine, `record ${record.n} of ${ref.sessionId}: ${error.message}`) ?? error;
    }
    // A machine that accepts all events of a record can still reach another state than the machine that wrote it.
    if (leafOf(actor.state) !== leafOf({ value: record.state } as Pick<SessionState, 'value'>)) {
      const folded = `${leafOf(actor.state)}, the record says ${JSON.stringify(record.state)}`;
      const diverged = `record ${record.n} of ${ref.sessionId} leads to ${folded}`;
      throw otherMachine(record.n, machine, diverged) ?? new FoldDivergedError(diverged);
    }
    receipts.recall(record.input, record.events);
    ({ n, at } = record);
    fence = stored.fence;
    hash = end.hash;
    cursor = record.cursor ?? cursor;
    writer = record.attempt;
  }
  if (chain.n < known) throw new ChainBrokenError(`the journal of ${ref.sessionId} ends before its snapshot`);
  return { actor, transcript, receipts, n, fence, hash, at, cursor, writer, tail: n - known, copy };
}

/**
 * Reads the transcript of a session that was loaded without it.
 * @param upTo the session's newest record, which the journal must reach.
 * @param onRecord called for each record.
 * @throws ChainBrokenError, RecordUnreadableError, and errors of the journal and the object store.
 */
export async function readTranscript(
  ports: Pick<LoadPorts, 'journal' | 'blobs'>,
  ref: SessionRef,
  upTo: Pick<LoadedSession, 'n' | 'hash' | 'fence'>,
  onRecord: (record: JournalRecord) => void = () => {},
): Promise<Transcript> {
  const transcript = new Transcript();
  let chain = GENESIS;
  const records = ports.journal.read(ref, 0, upTo.fence);
  for await (const { record, end } of linksOf(ports, ref, records, GENESIS, () => decodeUnchangedRecord)) {
    chain = end;
    for (const event of record.events) transcript.push(event);
    onRecord(record);
    if (chain.n === upTo.n) break;
  }
  if (chain.n !== upTo.n || chain.hash !== upTo.hash)
    throw new ChainBrokenError(`the journal of ${ref.sessionId} does not lead to its record ${upTo.n}`);
  return transcript;
}

/** The end of a chain of records; the hash is null where earlier records were not read. */
interface ChainEnd {
  readonly n: number;
  readonly hash: string | null;
  /** Position of the last record. */
  readonly fence: number;
}

type ReadEnd = ChainEnd & { readonly hash: string };

const GENESIS: ReadEnd = { n: 0, hash: GENESIS_HASH, fence: 0 };

/** A record, and the end of the chain with it. */
interface Link {
  readonly record: JournalRecord;
  readonly stored: StoredRecord;
  readonly end: ReadEnd;
}

/**
 * Yields records, each checked to follow its predecessor: consecutive numbers, and the hash of the previous bytes. Where
 * records are missing, they are read again from the stream's leader, as a damaged replica skips them.
 * @param decodeNext chooses the decoder of the record that follows this end of the chain.
 * @throws ChainBrokenError, RecordUnreadableError, and errors of the journal and the object store.
 */
async function* linksOf(
  { journal, blobs }: Pick<LoadPorts, 'journal' | 'blobs'>,
  ref: SessionRef,
  records: AsyncIterable<StoredRecord>,
  from: ChainEnd,
  decodeNext: (chain: ChainEnd) => typeof decodeRecord,
): AsyncGenerator<Link, void, undefined> {
  let chain = from;
  const read = ({ bytes }: StoredRecord) => readRecord(bytes, blobs, UPCASTS, decodeNext(chain));
  const link = (record: JournalRecord, stored: StoredRecord): Link => {
    const end = checkedEnd(chain, record, stored, ref);
    chain = end;
    return { record, stored, end };
  };
  for await (const stored of records) {
    let record = await read(stored);
    while (record.n > chain.n + 1) {
      const missing = await journal.firstAfter(ref, chain.fence);
      if (!missing || missing.fence >= stored.fence) break;
      yield link(await read(missing), missing);
      // Decoded again: after this end of the chain, `decodeNext` may choose the other decoder.
      record = await read(stored);
    }
    yield link(record, stored);
  }
}

/** The end of the chain with this record. @throws ChainBrokenError if it does not follow, or is another session's. */
function checkedEnd(chain: ChainEnd, record: JournalRecord, { bytes, fence }: StoredRecord, ref: SessionRef): ReadEnd {
  if (record.session_id !== ref.sessionId)
    throw new ChainBrokenError(`record ${record.n} in the journal of ${ref.sessionId} is of ${record.session_id}`);
  if (record.n !== chain.n + 1 || (chain.hash !== null && record.prev_hash !== chain.hash))
    throw new ChainBrokenError(`record ${record.n} of ${ref.sessionId} does not follow record ${chain.n}`);
  return { n: record.n, hash: sha256Hex(bytes), fence };
}

/**
 * Reads one record of this version or an earlier one, and restores its large fields.
 * @param upcasts converters from earlier versions.
 * @param decode {@link decodeUnchangedRecord} where a hash covers the bytes.
 * @throws RecordUnreadableError or a subclass: BlobMissingError for a missing large field, SessionDeletedError for a
 *   tombstone, RecordVersionUnknownError. Errors of the object store.
 */
export async function readRecord(
  bytes: Uint8Array,
  blobs: Pick<Blobs, 'get'>,
  upcasts: ReadonlyMap<number, Upcast> = UPCASTS,
  decode: typeof decodeRecord = decodeRecord,
): Promise<JournalRecord> {
  // A search for the member's name in the bytes is cheaper than parsing twice. A false match costs a second parse only.
  if (!Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).includes('"blobs":['))
    return decode(bytes, undefined, upcasts);
  const texts = new Map<string, string>();
  for (const { sha256 } of blobRefsOf(bytes, upcasts)) {
    const blob = texts.has(sha256) ? null : await blobs.get(sha256);
    if (blob) texts.set(sha256, Buffer.from(blob).toString('utf8'));
  }
  return decode(bytes, ({ sha256 }) => texts.get(sha256), upcasts);
}

/** The snapshot of a loaded session, as bytes. */
export function snapshotBytes(session: Omit<LoadedSession, 'transcript' | 'tail'>): Uint8Array {
  const { n, fence, hash, at, cursor, writer, copy, actor, receipts } = session;
  const snapshot: Snapshot = {
    v: SNAPSHOT_VERSION,
    shape: CONTEXT_SHAPE,
    n,
    fence,
    hash,
    at,
    ...(cursor ? { cursor } : {}),
    writer,
    copy,
    receipts: receipts.waiting,
    state: actor.store(),
  };
  return Buffer.from(canonicalJson(snapshot), 'utf8');
}

async function newestSnapshot(snapshots: Snapshots, ref: SessionRef): Promise<Snapshot | null> {
  try {
    const bytes = await snapshots.get(ref);
    if (bytes === null) return null;
    return Snapshot.parse(JSON.parse(Buffer.from(bytes).toString('utf8')));
  } catch {
    // The cache cannot be read now, is damaged, or of another release. The journal has the same content.
    return null;
  }
}

/** Versions of this release and of what it stores for sessions. The member names are the names in JSON reports. */
export const FORMAT_VERSIONS = {
  /** Version of the packages and of the image. */
  version: VERSION,
  /** Version of the turn machine: decides whether a run can be replayed byte for byte. */
  machine_version: MACHINE_VERSION,
  /** Version of journal records. */
  record_version: RECORD_VERSION,
  /** Version of the record that replaces the journal of a deleted session. */
  tombstone_version: TOMBSTONE_VERSION,
  /** Version of snapshots, which are caches. */
  snapshot_version: SNAPSHOT_VERSION,
} as const;
