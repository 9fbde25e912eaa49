/**
 * Replay: runs a journal through the pure core again, with all outside input from the journal, and compares each record with
 * the recorded bytes. It needs no model, tool or hook. Replay takes some members from the record: `input`, `at`, `attempt`,
 * `cursor` and the machine version. If one of them was altered and the events stay the same, only the hash chain shows it, in
 * the next record. For the newest record, only the closing line of an export shows it.
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

/** The recomputed record differs from the recorded one, or a record is unreadable, missing, repeated or of another session. */
export class ReplayDivergedError extends Error {
  readonly code = 'replay_diverged';
  /** The record's number. */
  readonly n: number;
  /** RFC 6901 pointer to the first member that differs. */
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
 * @returns the number of records, none of which differs, and the session's id. A record of an earlier version is compared in
 *   today's shape.
 * @throws ReplayDivergedError at the first record that differs or is unreadable; BlobMissingError where the object store lacks
 *   a blob; RecordVersionUnknownError and MachineVersionUnknownError for versions of another release; SessionDeletedError at
 *   a tombstone. Also errors of `records` and of the object store.
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

/** Support of earlier releases, as replay knows it. Tests replace it. */
export interface EarlierReleases {
  readonly upcasts?: ReadonlyMap<number, Upcast>;
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

  /** Hash of the newest record. */
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

  /** Reads the next record without taking it. Checks neither its position nor its content. @throws as {@link take}. */
  read(bytes: Uint8Array): Promise<JournalRecord> {
    return readOrDiverge(bytes, this.#blobs, this.#n + 1, this.#earlier.upcasts);
  }

  /**
   * Recomputes the next record and compares it with its bytes.
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

// A record with this release's version but an invalid shape was not written by this release: a divergence.
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
 * Maps a read error of record `n`. It is not a divergence if the session is deleted, or only another release or another store
 * can read the record.
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
 * @throws ReplayDivergedError if they differ.
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

/** A record of an earlier version cannot be reproduced byte for byte. Its content, written in today's shape, must be. */
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
