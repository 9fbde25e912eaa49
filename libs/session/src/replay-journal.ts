/**
 * Replay: runs a journal again through the pure core, with everything that came from the world taken from the journal,
 * and holds each record it makes against the recorded bytes. No model, tool or hook is needed. What the core does not
 * make itself (`at`, `attempt`, who asked for a receipt) is held by the chain alone: a change of it shows in the record
 * that follows.
 */
import type { Blobs } from '@coxswain/ports';
import {
  BlobMissingError,
  canonicalJson,
  GENESIS_HASH,
  type JournalRecord,
  type Json,
  RecordUnreadableError,
  RecordVersionUnknownError,
} from '@coxswain/protocol';
import { SessionActor } from '@coxswain/turn';
import { readRecord } from './load-session.ts';
import { buildRecord, sealRecord } from './seal-record.ts';

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
    const show = (value: Json | undefined) => (value === undefined ? 'nothing' : canonicalJson(value).slice(0, 200));
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
 * where the object store does not hold what it refers to; RecordVersionUnknownError for a version of another release.
 */
export async function replayJournal(
  records: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  blobs: Pick<Blobs, 'get'> = NO_BLOBS,
): Promise<{ readonly records: number; readonly sessionId: string }> {
  let actor: SessionActor | null = null;
  let n = 0;
  let hash = GENESIS_HASH;
  let sessionId = '';
  for await (const bytes of records) {
    n++;
    const recorded = await readOrDiverge(bytes, blobs, n);
    if (actor === null) {
      sessionId = recorded.session_id;
      actor = new SessionActor(sessionId);
    }
    const astray = outOfPlace(recorded, n, sessionId);
    if (astray !== null) throw astray;
    hash = recompute(actor, recorded, bytes, n, hash, sessionId);
  }
  return { records: n, sessionId };
}

/** A record that stands where another should: a journal that was cut, doubled or joined is told in one sentence. */
function outOfPlace(recorded: JournalRecord, n: number, sessionId: string): ReplayDivergedError | null {
  const diverged = (path: string, expected: Json, actual: Json, said: string) =>
    new ReplayDivergedError(n, path, expected, actual, said);
  if (recorded.session_id !== sessionId) {
    const said = `record ${n} is of the session ${recorded.session_id}; those before it are of ${sessionId}`;
    return diverged('/session_id', recorded.session_id, sessionId, said);
  }
  if (recorded.n === n) return null;
  const said =
    n === 1
      ? `record 1 is missing: the journal begins with record ${recorded.n}`
      : recorded.n > n
        ? `record ${n} is missing: record ${recorded.n} stands behind record ${n - 1}`
        : `record ${n} should stand behind record ${n - 1}, and record ${recorded.n} stands there again`;
  return diverged('/n', recorded.n, n, said);
}

// A record of this release's version that does not read as one was not written by it.
async function readOrDiverge(bytes: Uint8Array, blobs: Pick<Blobs, 'get'>, n: number): Promise<JournalRecord> {
  try {
    return await readRecord(bytes, blobs);
  } catch (error) {
    throw asDivergence(error, n);
  }
}

/** What a failure to read record `n` is to a replay: a record that only another release, or another store, can read is sound. */
export function asDivergence(error: unknown, n: number): unknown {
  const elsewhere = error instanceof BlobMissingError || error instanceof RecordVersionUnknownError;
  if (!(error instanceof RecordUnreadableError) || elsewhere) return error;
  const said = `record ${n} cannot be read: ${error.message}`;
  return new ReplayDivergedError(n, '', `unreadable: ${error.message}`, undefined, said);
}

function recompute(
  actor: SessionActor,
  recorded: JournalRecord,
  bytes: Uint8Array,
  n: number,
  hash: string,
  sessionId: string,
): string {
  const { attempt, at, cursor, input } = recorded;
  const { events } = stepOrDiverge(actor, recorded, n);
  const record = buildRecord({ sessionId, n, attempt, prevHash: hash, at, cursor }, input, events, actor.state);
  const sealed = sealRecord(record);
  if (Buffer.compare(sealed.bytes, bytes) !== 0) {
    const text = (value: Uint8Array) => JSON.parse(Buffer.from(value).toString('utf8')) as Json;
    const difference = firstDifference(text(bytes), text(sealed.bytes), '');
    // Equal values and other bytes: the record is not in canonical form.
    const { path, expected, actual } = difference ?? {
      path: '',
      expected: 'other bytes for the same value',
      actual: 'canonical JSON',
    };
    throw new ReplayDivergedError(n, path, expected, actual);
  }
  return sealed.hash;
}

function stepOrDiverge(actor: SessionActor, recorded: JournalRecord, n: number) {
  try {
    return actor.step(recorded.input, n, Date.parse(recorded.at));
  } catch (error) {
    throw new ReplayDivergedError(n, '/events', recorded.events as unknown as Json, (error as Error).message);
  }
}

function firstDifference(
  expected: Json | undefined,
  actual: Json | undefined,
  path: string,
): { path: string; expected: Json | undefined; actual: Json | undefined } | null {
  if (expected === actual) return null;
  const bothObjects =
    typeof expected === 'object' &&
    typeof actual === 'object' &&
    expected !== null &&
    actual !== null &&
    expected !== undefined &&
    actual !== undefined;
  if (!bothObjects || Array.isArray(expected) !== Array.isArray(actual)) return { path, expected, actual };
  const a = expected as { [key: string]: Json };
  const b = actual as { [key: string]: Json };
  for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) {
    const step = `${path}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    const difference = firstDifference(a[key], b[key], step);
    if (difference) return difference;
  }
  return null;
}
