/**
 * Replay: runs a journal through the pure core again, with all outside input from the journal, and compares each
 * recomputed record with the recorded bytes. It needs no model, tool or hook. Replay takes some members from the
 * record: `input`, `at`, `attempt`, `cursor`, the machine version, and in record 1 the session's id. If one of them was
 * altered and the other members still follow from it, only the hash chain shows that, in the next record. For the
 * newest record, only the closing line of an export shows it.
 */
import type { Blobs } from '@coxswain/ports';
import {
  BlobMissingError,
  canonicalJson,
  cutText,
  GENESIS_HASH,
  type JournalRecord,
  type Json,
  RECORD_VERSION,
  RecordUnreadableError,
  RecordVersionUnknownError,
  SessionDeletedError,
  type SessionEvent,
  type Upcast,
} from '@coxswain/protocol';
import { emptyState, MACHINE_VERSION, SessionActor, type SessionState } from '@coxswain/turn';
import { buildRecord, sealRecord, sha256Hex } from './append-record.ts';
import { firstDifference } from './first-difference.ts';
import { readRecord } from './load-session.ts';
import { machineOf, rejectUnreplayable } from './machine-version.ts';

/**
 * A record differs from its recomputation, cannot be recomputed, or is unreadable, missing, repeated or of another
 * session.
 */
export class ReplayDivergedError extends Error {
  readonly code = 'replay_diverged';
  /** The record's number. */
  readonly n: number;
  /**
   * RFC 6901 pointer to the first member that differs. Empty for an unreadable record, and for one that is not
   * canonical.
   */
  readonly path: string;
  /** The recorded value, or what is wrong with the record; undefined if the record has none. */
  readonly expected: Json | undefined;
  /** The recomputed value, or the error of the recomputation; undefined if there is none. */
  readonly actual: Json | undefined;

  /** @param said replaces the message where the two values would not explain the difference. */
  constructor(n: number, path: string, expected: Json | undefined, actual: Json | undefined, said?: string) {
    const show = (value: Json | undefined) => (value === undefined ? 'nothing' : cutText(canonicalJson(value), 200));
    super(said ?? `record ${n} differs at ${path || '/'}: expected ${show(expected)}, recomputed ${show(actual)}`);
    this.n = n;
    this.path = path;
    this.expected = expected;
    this.actual = actual;
  }
}

const NO_BLOBS: Pick<Blobs, 'get'> = { get: async () => null };

/**
 * Replays a whole journal.
 * @param records the stored bytes of every record, from the first.
 * @param blobs the store of large fields. By default it is empty.
 * @returns the number of records, none of which differs, and the session's id. A record of an earlier version is
 *   compared in today's shape.
 * @throws ReplayDivergedError at the first record that differs, cannot be recomputed or is out of place;
 *   BlobMissingError where `blobs` lacks a large field; RecordVersionUnknownError and MachineVersionUnknownError for
 *   versions of another release; SessionDeletedError at a tombstone. Also errors of `records` and of `blobs`.
 */
export async function replayJournal(
  records: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  blobs: Pick<Blobs, 'get'> = NO_BLOBS,
  earlier?: EarlierReleases,
): Promise<{ readonly records: number; readonly sessionId: string }> {
  const replay = new JournalReplay(blobs, earlier);
  for await (const bytes of records) await replay.take(bytes);
  return { records: replay.n, sessionId: replay.sessionId };
}

/** The versions of records and of the machine that replay supports. Tests replace them. */
export interface EarlierReleases {
  /** Converters of records, by the earlier version. Default `UPCASTS`. */
  readonly upcasts?: ReadonlyMap<number, Upcast>;
  /** Machine versions whose runs are replayed; the current one is among them. Default `REPLAYED_VERSIONS`. */
  readonly machines?: ReadonlySet<number>;
}

/** A replay in progress: takes records in order and holds the session's state after the newest. */
export class JournalReplay {
  readonly #blobs: Pick<Blobs, 'get'>;
  readonly #earlier: EarlierReleases;
  #actor: SessionActor | null = null;
  #n = 0;
  #hash = GENESIS_HASH;
  #sessionId = '';

  constructor(blobs: Pick<Blobs, 'get'> = NO_BLOBS, earlier: EarlierReleases = {}) {
    this.#blobs = blobs;
    this.#earlier = earlier;
  }

  /** Number of records taken. */
  get n(): number {
    return this.#n;
  }

  /** Hash of the newest record's bytes; `GENESIS_HASH` before the first. */
  get hash(): string {
    return this.#hash;
  }

  /** The session's id; empty before the first record. */
  get sessionId(): string {
    return this.#sessionId;
  }

  /** The state after the newest record. */
  get state(): SessionState {
    return this.#actor?.state ?? emptyState(this.#sessionId);
  }

  /**
   * Reads the next record without taking it. Checks its schema, but neither its position nor whether it replays.
   * @throws ReplayDivergedError for an unreadable record, and otherwise as {@link replayJournal}.
   */
  read(bytes: Uint8Array): Promise<JournalRecord> {
    return readOrDiverge(bytes, this.#blobs, this.#n + 1, this.#earlier.upcasts);
  }

  /**
   * Recomputes the next record and compares it with its bytes.
   * @param read the record, if the caller has read it from these bytes.
   * @throws as {@link replayJournal}. After an error, no further record may be taken.
   */
  async take(bytes: Uint8Array, read?: JournalRecord): Promise<JournalRecord> {
    const recorded = read ?? (await this.read(bytes));
    this.#n++;
    if (this.#actor === null) {
      this.#sessionId = recorded.session_id;
      this.#actor = new SessionActor(this.#sessionId);
    }
    const astray = outOfPlace(recorded, this.#n, this.#sessionId);
    if (astray !== null) throw astray;
    rejectUnreplayable(recorded, this.#earlier.machines);
    this.#hash = recomputeOrDiverge(this.#actor, recorded, bytes, this.#n, this.#hash, this.#sessionId);
    return recorded;
  }
}

/** The error for a record at a wrong position: the journal was cut, repeated or joined. */
function outOfPlace(recorded: JournalRecord, n: number, sessionId: string): ReplayDivergedError | null {
  const diverged = (path: string, expected: Json, actual: Json, said: string) =>
    new ReplayDivergedError(n, path, expected, actual, said);
  if (recorded.session_id !== sessionId) {
    const said = `record ${n} belongs to session ${recorded.session_id}; earlier records belong to ${sessionId}`;
    return diverged('/session_id', recorded.session_id, sessionId, said);
  }
  if (recorded.n === n) return null;
  const said =
    n === 1
      ? `record 1 is missing: the journal starts with record ${recorded.n}`
      : recorded.n > n
        ? `record ${n} is missing: record ${recorded.n} follows record ${n - 1}`
        : `record ${n} should follow record ${n - 1}, but record ${recorded.n} is repeated there`;
  return diverged('/n', recorded.n, n, said);
}

async function readOrDiverge(
  bytes: Uint8Array,
  blobs: Pick<Blobs, 'get'>,
  n: number,
  upcasts?: ReadonlyMap<number, Upcast>,
): Promise<JournalRecord> {
  try {
    return await readRecord(bytes, blobs, upcasts);
  } catch (error) {
    throw asDivergence(error, n);
  }
}

/**
 * Maps the error of reading record `n`: an unreadable record is a divergence, because no release wrote it like this.
 * Other errors are returned as they are, also for a deleted session, and for a record that only another release or
 * another store can read.
 */
export function asDivergence(error: unknown, n: number): unknown {
  const isOther =
    error instanceof BlobMissingError ||
    error instanceof RecordVersionUnknownError ||
    error instanceof SessionDeletedError;
  if (!(error instanceof RecordUnreadableError) || isOther) return error;
  const said = `record ${n} cannot be read: ${error.message}`;
  return new ReplayDivergedError(n, '', `unreadable: ${error.message}`, undefined, said);
}

/**
 * Recomputes a record from its input, and compares the bytes. @returns the hash of the stored bytes.
 * @throws ReplayDivergedError if the bytes differ, or if the machine cannot apply the input.
 */
function recomputeOrDiverge(
  actor: SessionActor,
  recorded: JournalRecord,
  bytes: Uint8Array,
  n: number,
  prevHash: string,
  sessionId: string,
): string {
  const { attempt, at, cursor, input } = recorded;
  const events = asMadeBy(machineOf(recorded), stepOrDiverge(actor, recorded, n).events);
  const record = buildRecord({ sessionId, n, attempt, prevHash, at, cursor }, input, events, actor.state);
  const sealed = sealRecord(record);
  if (Buffer.compare(sealed.bytes, bytes) === 0) return sealed.hash;
  const today = inTodaysShape(recorded, bytes);
  if (Buffer.compare(sealed.bytes, today) === 0) return sha256Hex(bytes);
  const text = (value: Uint8Array) => JSON.parse(Buffer.from(value).toString('utf8')) as Json;
  const difference = firstDifference(text(today), text(sealed.bytes), '');
  // Equal values with different bytes: the record is not canonical.
  const { path, expected, actual } = difference ?? {
    path: '',
    expected: 'other bytes for the same value',
    actual: 'canonical JSON',
  };
  throw new ReplayDivergedError(n, path, expected, actual);
}

/** A run's machine version is recorded, not computed: use the recorded one. */
function asMadeBy(machine_version: number | undefined, events: readonly SessionEvent[]): readonly SessionEvent[] {
  if (machine_version === undefined || machine_version === MACHINE_VERSION) return events;
  return events.map((event) => (event.type === 'agent_start' ? { ...event, machine_version } : event));
}

/**
 * The bytes to compare with the recomputed ones. They are the stored bytes, if the record has the current version. A record
 * of an earlier version cannot be recomputed byte for byte, so it is sealed again in the current shape. If its stored bytes
 * are not canonical JSON, they are returned unchanged, and the comparison fails.
 */
function inTodaysShape(recorded: JournalRecord, bytes: Uint8Array): Uint8Array {
  const stored = Buffer.from(bytes).toString('utf8');
  const raw = JSON.parse(stored) as { readonly v: number };
  return raw.v === RECORD_VERSION || canonicalJson(raw) !== stored ? bytes : sealRecord(recorded).bytes;
}

function stepOrDiverge(actor: SessionActor, recorded: JournalRecord, n: number) {
  try {
    return actor.step(recorded.input, n, Date.parse(recorded.at));
  } catch (error) {
    throw new ReplayDivergedError(n, '/events', recorded.events as unknown as Json, (error as Error).message);
  }
}
