/** Loading: from a snapshot and the journal behind it to a session that can go on. */
import type { Blobs, Journal, Publisher, Snapshots, StoredRecord } from '@coxswain/ports';
import {
  blobRefsOf,
  CopyOrigin,
  type Cursor,
  canonicalJson,
  decodeRecord,
  decodeRecordAgain,
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
import { Receipts } from '../runner/receipts.ts';
import { Transcript } from '../view/transcript.ts';
import { copyAfter } from './copy-state.ts';
import { machineOf, otherMachine } from './machine-version.ts';
import { sha256Hex } from './seal-record.ts';

/** A session as its journal says it is. */
export interface LoadedSession {
  readonly actor: SessionActor;
  /** Null where only the state was asked for, and a snapshot has spared the rest. */
  readonly transcript: Transcript | null;
  readonly receipts: Receipts;
  readonly n: number;
  readonly fence: number;
  readonly hash: string;
  readonly at: string;
  readonly cursor: Cursor | undefined;
  /** The incarnation of the host that wrote the newest record. */
  readonly writer: string;
  /** Records behind the snapshot that it was loaded from, or all of them. */
  readonly tail: number;
  /** The copy that is under way. */
  readonly copy: CopyOrigin | null;
}

/** A session that its host can own. Its transcript may have to be read yet: {@link readTranscript}. */
export type LiveSession = Omit<LoadedSession, 'tail'>;

/** What a session has said so far. @throws Error where that was not read yet: a broken invariant. */
export function transcriptOf({ transcript, n }: LiveSession): Transcript {
  if (!transcript) throw new Error(`record ${n}: the transcript is not loaded yet`);
  return transcript;
}

/** A record does not chain to the one before it, or is of another session. */
export class ChainBrokenError extends Error {
  readonly code = 'chain_broken';
}

/** The events of a record lead the machine to another state than the record says. */
export class FoldDivergedError extends Error {
  readonly code = 'replay_diverged';
}

/** The ports that loading reads. */
export interface LoadPorts {
  readonly journal: Journal;
  readonly snapshots: Snapshots;
  readonly blobs: Blobs;
  readonly publisher: Publisher;
}

/**
 * Shape of a snapshot; it rises with the shape of what the context's members hold, not with every machine version. A
 * cache: one that does not fit is passed over, and the journal read from its beginning.
 */
export const SNAPSHOT_VERSION = 8;
/** Which members the context has: with others, what a snapshot holds is not what the machine goes on from. */
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
 * Loads a session: its state from the newest snapshot and the records behind that.
 * @param whole read every record, so that the transcript stands. Those that the snapshot holds only go into that: neither
 *   is the machine fed with them again, nor are they held against their schema, as the hash of the snapshot vouches for them.
 *   Otherwise reading begins with the record that the snapshot was made after, which costs the same however long a session is.
 * @param onRecord told of every record that is read; of some twice, where the snapshot turns out to be of no use.
 * @param newest where the newest record stands, for whoever has just read it.
 * @throws ChainBrokenError, RecordUnreadableError, FoldDivergedError, MachineVersionUnknownError, and what the journal
 * port throws.
 */
export async function loadSession(
  ports: LoadPorts,
  ref: SessionRef,
  whole: boolean,
  onRecord: (record: JournalRecord) => void = () => {},
  newest?: number,
): Promise<LoadedSession> {
  // Side by side, as a session that wakes should not wait for one after the other.
  const all = whole ? begun(ports.journal.read(ref, 0, newest)) : null;
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
    // A snapshot is a cache: one that the machine or the journal does not continue from is passed over.
    const loaded = await fold(ports, ref, whole, null, ports.journal.read(ref), onRecord);
    // It was made after an acknowledged record. A journal that ends before that one has lost its tail, and what happened then.
    if (loaded.n < snapshot.n)
      throw new ChainBrokenError(
        `the journal of ${ref.sessionId} ends with record ${loaded.n}, and its snapshot was made after record ${snapshot.n}`,
      );
    return loaded;
  }
}

/** The same records, the first of them on their way already. */
async function* begunFrom(
  first: Promise<IteratorResult<StoredRecord>>,
  rest: AsyncIterator<StoredRecord>,
): AsyncGenerator<StoredRecord, void, undefined> {
  for (let next = await first; !next.done; next = await rest.next()) yield next.value;
}

function begun(records: AsyncIterable<StoredRecord>): AsyncIterable<StoredRecord> {
  const iterator = records[Symbol.asyncIterator]();
  const first = iterator.next();
  // Whoever reads hears of it; until then nobody has to.
  first.catch(() => undefined);
  return begunFrom(first, iterator);
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
  const decodeNext = ({ n: last }: ChainEnd) => (last < known ? decodeRecordAgain : decodeRecord);
  for await (const { record, stored, end } of linksOf(ports, ref, records, chain, decodeNext)) {
    const isKnown = chain.n < known;
    chain = end;
    machine = machineOf(record) ?? machine;
    for (const event of record.events) transcript?.push(event);
    copy = copyAfter(copy, record, ref.sessionId);
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
    // XState takes a state that has gone, and an event that no longer leads on, in silence.
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
 * Reads what a session that was loaded without it has said so far.
 * @param upTo its newest record, which the journal must lead to.
 * @param onRecord told of every record.
 * @throws ChainBrokenError, RecordUnreadableError, and what the journal port throws.
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
  for await (const { record, end } of linksOf(ports, ref, records, GENESIS, () => decodeRecordAgain)) {
    chain = end;
    for (const event of record.events) transcript.push(event);
    onRecord(record);
    if (chain.n === upTo.n) break;
  }
  if (chain.n !== upTo.n || chain.hash !== upTo.hash)
    throw new ChainBrokenError(`the journal of ${ref.sessionId} does not lead to its record ${upTo.n}`);
  return transcript;
}

/** Where a chain of records ends; the hash is null where the records before were not read. */
interface ChainEnd {
  readonly n: number;
  readonly hash: string | null;
  /** The place of the last record. */
  readonly fence: number;
}

type ReadEnd = ChainEnd & { readonly hash: string };

const GENESIS: ReadEnd = { n: 0, hash: GENESIS_HASH, fence: 0 };

/** A record that follows the ones before it, and the end of the chain with it. */
interface Link {
  readonly record: JournalRecord;
  readonly stored: StoredRecord;
  readonly end: ReadEnd;
}

/**
 * Records with each checked to follow the one before: dense numbers, and the hash of the bytes before. Records that are missing in
 * between are read once more where writes are decided, as a damaged replica steps over them.
 * @param decodeNext how the record behind an end of the chain is decoded.
 * @throws ChainBrokenError, RecordUnreadableError.
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
    const end = after(chain, record, stored, ref);
    chain = end;
    return { record, stored, end };
  };
  for await (const stored of records) {
    let record = await read(stored);
    while (record.n > chain.n + 1) {
      const missing = await journal.firstAfter(ref, chain.fence);
      if (!missing || missing.fence >= stored.fence) break;
      yield link(await read(missing), missing);
      record = await read(stored);
    }
    yield link(record, stored);
  }
}

function after(chain: ChainEnd, record: JournalRecord, { bytes, fence }: StoredRecord, ref: SessionRef): ReadEnd {
  const follows = record.n === chain.n + 1 && (chain.hash === null || record.prev_hash === chain.hash);
  if (!follows || record.session_id !== ref.sessionId)
    throw new ChainBrokenError(`record ${record.n} of ${ref.sessionId} does not follow record ${chain.n}`);
  return { n: record.n, hash: sha256Hex(bytes), fence };
}

/**
 * Reads one record, its large fields put back in place, whatever released version it is of. Throws RecordUnreadableError.
 * @param upcasts how earlier versions are read.
 * @param decode {@link decodeRecordAgain} where a hash vouches for the bytes.
 */
export async function readRecord(
  bytes: Uint8Array,
  blobs: Pick<Blobs, 'get'>,
  upcasts: ReadonlyMap<number, Upcast> = UPCASTS,
  decode: typeof decodeRecord = decodeRecord,
): Promise<JournalRecord> {
  // Looking for the pointer member in the bytes is cheaper than parsing twice; a false alarm costs only that.
  if (!Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).includes('"blobs":['))
    return decode(bytes, undefined, upcasts);
  const texts = new Map<string, string>();
  for (const { sha256 } of blobRefsOf(bytes, upcasts)) {
    const blob = texts.has(sha256) ? null : await blobs.get(sha256);
    if (blob) texts.set(sha256, Buffer.from(blob).toString('utf8'));
  }
  return decode(bytes, ({ sha256 }) => texts.get(sha256), upcasts);
}

/** A loaded session's snapshot, as bytes. */
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
    // An older release's, a damaged or an absent cache: the journal says the same, only slower.
    return null;
  }
}

/** The versions of everything that this release stores or sends. The members are named as they are reported in JSON. */
export const FORMAT_VERSIONS = {
  /** Of the packages and of the image. */
  version: VERSION,
  /** Of the turn machine: whether a run can be replayed byte for byte. */
  machine_version: MACHINE_VERSION,
  /** Of the shape of a journal's records. */
  record_version: RECORD_VERSION,
  /** Of the shape of the record that replaces the journal of a deleted session. */
  tombstone_version: TOMBSTONE_VERSION,
  /** Of the shape of snapshots, which are caches. */
  snapshot_version: SNAPSHOT_VERSION,
} as const;
