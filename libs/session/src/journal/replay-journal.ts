/**
 * Replay: runs a journal again through the pure core, with everything that came from the world taken from the journal,
 * and holds each record it makes against the recorded bytes. No model, tool or hook is needed. What the core does not
 * make itself (`at`, `attempt`, `cursor`, who asked for a receipt) is held by the chain alone: a change of it shows in the
 * record that follows. For the newest record, only the closing line of an export shows it.
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
import { firstDifference } from './first-difference.ts';
import { readRecord } from './load-session.ts';
import { checkReplayed, machineOf } from './machine-version.ts';
import { buildRecord, sealRecord, sha256Hex } from './seal-record.ts';

/** A recomputed record is not the recorded one. */
export class ReplayDivergedError extends Error {
  readonly code = 'replay_diverged';
  /** The record, by its place in the journal. */
  readonly n: number;
  /** RFC 6901 pointer to the first member that differs. */
  readonly path: string;
  readonly expected: Json | undefined;
  readonly actual: Json | undefined;

  /** @param said what happened, where the two values alone would say it badly. */
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
 * @returns how many records were recomputed, byte for byte.
 * @throws ReplayDivergedError at the first record that differs, also where it has been made unreadable; BlobMissingError
 * where the object store does not hold what it refers to; RecordVersionUnknownError and MachineVersionUnknownError for
 * versions of another release.
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

/** What a replay knows of earlier releases, where it is not what this one knows: its tests say something else. */
export interface EarlierReleases {
  readonly upcasts?: ReadonlyMap<number, Upcast>;
  readonly machines?: ReadonlySet<number>;
}

/** A replay that is under way: takes records in order, and knows the session as it is after the newest. */
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

  /** Records so far. */
  get n(): number {
    return this.#n;
  }

  /** The hash of the newest record. */
  get hash(): string {
    return this.#hash;
  }

  /** Whose journal it is; empty before its first record. */
  get sessionId(): string {
    return this.#sessionId;
  }

  /** The session after the newest record. */
  get state(): SessionState {
    return this.#actor?.state ?? emptyState(this.#sessionId);
  }

  /** Reads the next record, without taking it: its place in the journal is not looked at. Throws as {@link take} does. */
  read(bytes: Uint8Array): Promise<JournalRecord> {
    return readOrDiverge(bytes, this.#blobs, this.#n + 1, this.#earlier.upcasts);
  }

  /**
   * Recomputes the next record and holds it against its bytes.
   * @throws as {@link replayJournal} does; nothing more may be taken then.
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
    checkReplayed(recorded, this.#earlier.machines);
    this.#hash = recompute(this.#actor, recorded, bytes, this.#n, this.#hash, this.#sessionId);
    return recorded;
  }
}

/** A record that stands where another should: a journal that was cut, doubled or joined is told in one sentence. */
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

// A record of this release's version that does not read as one was not written by it.
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

/** What a failure to read record `n` is to a replay: a record that only another release, or another store, can read is sound. */
export function asDivergence(error: unknown, n: number): unknown {
  const elsewhere =
    error instanceof BlobMissingError ||
    error instanceof RecordVersionUnknownError ||
    error instanceof SessionDeletedError;
  if (!(error instanceof RecordUnreadableError) || elsewhere) return error;
  const said = `record ${n} cannot be read: ${error.message}`;
  return new ReplayDivergedError(n, '', `unreadable: ${error.message}`, undefined, said);
}

/** @returns the hash of the stored bytes. */
function recompute(
  actor: SessionActor,
  recorded: JournalRecord,
  bytes: Uint8Array,
  n: number,
  hash: string,
  sessionId: string,
): string {
  const { attempt, at, cursor, input } = recorded;
  const events = asMadeBy(machineOf(recorded), stepOrDiverge(actor, recorded, n).events);
  const record = buildRecord({ sessionId, n, attempt, prevHash: hash, at, cursor }, input, events, actor.state);
  const sealed = sealRecord(record);
  if (Buffer.compare(sealed.bytes, bytes) === 0) return sealed.hash;
  const today = inTodaysShape(recorded, bytes);
  if (Buffer.compare(sealed.bytes, today) === 0) return sha256Hex(bytes);
  const text = (value: Uint8Array) => JSON.parse(Buffer.from(value).toString('utf8')) as Json;
  const difference = firstDifference(text(today), text(sealed.bytes), '');
  // Equal values and other bytes: the record is not in canonical form.
  const { path, expected, actual } = difference ?? {
    path: '',
    expected: 'other bytes for the same value',
    actual: 'canonical JSON',
  };
  throw new ReplayDivergedError(n, path, expected, actual);
}

/** Which version has made a run is no consequence of anything: one that is replayed says its own. */
function asMadeBy(machine_version: number | undefined, events: readonly SessionEvent[]): readonly SessionEvent[] {
  if (machine_version === undefined || machine_version === MACHINE_VERSION) return events;
  return events.map((event) => (event.type === 'agent_start' ? { ...event, machine_version } : event));
}

/** A record of an earlier version cannot come out byte for byte: what it says, written as today, must. */
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
