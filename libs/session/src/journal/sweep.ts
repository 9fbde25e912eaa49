/**
 * Sweeps a bus: deletes sessions that ended long enough ago, completes unfinished deletions, and removes blobs without a
 * reference.
 *
 * SWEEP-1  A blob is removed only if it is older than {@link BOUNDS}.unusedBlobKeptMs and no record of any session refers to it.
 *          Storing a blob that exists already renews it once it is half that old. So a blob is never old enough while
 *          the record for which it was stored is still to be written.
 * SWEEP-2  A blob is removed only at the revision of its entry that the sweep has read: a renewed blob stays.
 */
import type { Journal, Purge, StoredBlob } from '@coxswain/ports';
import {
  type Actor,
  BOUNDS,
  decodeRecord,
  RecordNotServedError,
  type SessionRef,
  tombstoneIn,
} from '@coxswain/protocol';
import { CONCURRENCY } from '../hosting/load-limit.ts';
import { type DeletePorts, type Deletion, deleteSession, hashesIn } from './delete-from-outside.ts';
import { isAtRest } from './ended-record.ts';

/** Options of a sweep of sessions. */
export interface SweepOptions {
  /**
   * How long a tenant's ended sessions are kept after their last record, in milliseconds; null: until a command deletes
   * them.
   */
  readonly keptMs: (tenant: string) => number | null;
  /** Maximum number of sessions that one sweep deletes, with completed deletions. Rejected deletions do not count. */
  readonly max: number;
  readonly dryRun?: boolean | undefined;
  readonly by?: Actor | undefined;
}

/** A session, and the result of its deletion. */
export type SweptSession = { readonly ref: SessionRef; readonly deletion: Deletion };

/**
 * Deletes ended sessions whose time is over, tenant by tenant, and completes unfinished deletions. Ends at `max`; the
 * next sweep continues. Yields each session with the result of its deletion, also of a rejected one: `record_unreadable`
 * for a session with a record that no replica serves.
 * @throws errors of the ports. Earlier deletions remain done.
 */
export async function* sweepSessions(
  ports: DeletePorts,
  options: SweepOptions,
): AsyncGenerator<SweptSession, void, undefined> {
  const { by, dryRun, max, keptMs } = options;
  const nowMs = await ports.purge.nowMs();
  let deleted = 0;
  for (const tenant of await ports.purge.tenants()) {
    const kept = keptMs(tenant);
    const reason = kept === null ? undefined : 'past its retention';
    for await (const { ref, due } of dueIn(ports, tenant, kept === null ? null : nowMs - kept)) {
      if (deleted >= max) return;
      const deletion = due === true ? await deleteSession(ports, ref, { by, dryRun, reason }).catch(rejectionOf) : due;
      // A rejected deletion does not count towards `max`: the next sweep rejects it again.
      if (deletion.status !== 'refused') deleted++;
      yield { ref, deletion };
    }
  }
}

/** The other sessions do not wait for the repair of one record. */
function rejectionOf(error: unknown): Rejection {
  if (!(error instanceof RecordNotServedError)) throw error;
  return { status: 'refused', code: 'record_unreadable', message: error.message };
}

type Rejection = Extract<Deletion, { status: 'refused' }>;

/** A session to delete, or one whose newest record cannot be read now: nothing is known of its age, so it stays. */
interface DueSession {
  readonly ref: SessionRef;
  readonly due: true | Rejection;
}

async function* dueIn(
  ports: Pick<DeletePorts, 'journal' | 'purge'>,
  tenant: string,
  untilMs: number | null,
): AsyncGenerator<DueSession, void, undefined> {
  let some: SessionRef[] = [];
  const due = async () => {
    const found = await Promise.all(
      some.map(async (ref) => ({ ref, due: await isDue(ports, ref, untilMs).catch(rejectionOf) })),
    );
    some = [];
    return found.filter((one): one is DueSession => one.due !== false);
  };
  for await (const ref of ports.journal.sessions(tenant)) {
    some.push(ref);
    if (some.length >= CONCURRENCY) yield* await due();
  }
  yield* await due();
}

async function isDue(
  { journal, purge }: { readonly journal: Journal; readonly purge: Purge },
  ref: SessionRef,
  untilMs: number | null,
): Promise<boolean> {
  const last = await journal.last(ref);
  if (!last) return false;
  if (tombstoneIn(last.bytes)) return purge.hasBefore(ref, last.fence);
  if (untilMs === null) return false;
  try {
    const record = decodeRecord(last.bytes);
    return isAtRest(record) && Date.parse(record.at) <= untilMs;
  } catch {
    // An unreadable session is deleted only by an explicit command.
    return false;
  }
}

/** The result of a sweep of blobs. */
export interface SweptBlobs {
  /** Number of deleted blobs; in a dry run, of blobs to delete. */
  readonly deleted: number;
  /** Number of blobs that are old enough, but that a record refers to. */
  readonly used: number;
  /** Number of blobs that are not old enough, or were stored again meanwhile. */
  readonly left: number;
}

/**
 * Maximum number of candidates, blobs that are old enough, in one round of a sweep. Each round looks for their
 * references in every record, until no candidate is left.
 */
const BLOBS_AT_ONCE = 100_000;

/**
 * Removes blobs without a reference (SWEEP-1, SWEEP-2). Reads the records of the bus once for each round: see
 * {@link BLOBS_AT_ONCE}.
 * @param only these hashes; without it, all blobs of the store.
 * @param dryRun only counts the blobs to delete.
 * @param atOnce the number of candidates in one round.
 * @param signal ends the sweep.
 * @throws errors of the ports; the reason of an abort. Deleted blobs stay deleted.
 */
export async function sweepBlobs(
  purge: Purge,
  {
    only,
    dryRun = false,
    atOnce = BLOBS_AT_ONCE,
    signal,
  }: {
    readonly only?: ReadonlySet<string>;
    readonly dryRun?: boolean | undefined;
    readonly atOnce?: number;
    readonly signal?: AbortSignal | undefined;
  } = {},
): Promise<SweptBlobs> {
  const swept = { deleted: 0, used: 0, left: 0 };
  if (only?.size === 0) return swept;
  const oldMs = (await purge.nowMs()) - BOUNDS.unusedBlobKeptMs;
  let unused = new Map<string, StoredBlob>();
  const sweepRound = async () => {
    const looked = unused.size;
    await dropReferenced(purge, unused, signal);
    let deleted = 0;
    for (const blob of unused.values()) {
      signal?.throwIfAborted();
      if (dryRun || (await purge.blob(blob))) deleted++;
    }
    swept.deleted += deleted;
    swept.used += looked - unused.size;
    swept.left += unused.size - deleted;
    unused = new Map();
  };
  for await (const blob of purge.blobs()) {
    signal?.throwIfAborted();
    if (only && !only.has(blob.sha256)) continue;
    if (blob.storedAtMs > oldMs) swept.left++;
    else unused.set(blob.sha256, blob);
    if (unused.size >= atOnce) await sweepRound();
  }
  await sweepRound();
  return swept;
}

/** Takes the blobs to which a record refers out of the map. */
async function dropReferenced(purge: Purge, blobs: Map<string, StoredBlob>, signal?: AbortSignal): Promise<void> {
  if (blobs.size === 0) return;
  for await (const record of purge.records()) {
    signal?.throwIfAborted();
    for (const sha256 of hashesIn(record)) blobs.delete(sha256);
    if (blobs.size === 0) return;
  }
}
