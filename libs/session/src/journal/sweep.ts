/**
 * Sweeps a bus: deletes sessions that have ended long enough ago, brings deletions that were broken off to their end, and takes
 * away what no record refers to in the store of blobs.
 *
 * SWEEP-1  A blob goes only if it was stored longer ago than {@link BOUNDS}.unusedBlobKeptMs, and no record of any session
 *     refers to it. Whoever stores one that is there already makes it new again once it is half as old as that: so what is
 *     stored now for a record that is yet to come is never old enough.
 * SWEEP-2  It goes under the fence of its own entry: one that was made new meanwhile stays.
 */
import type { Journal, Purge, StoredBlob } from '@coxswain/ports';
import { type Actor, BOUNDS, decodeRecord, type SessionRef, tombstoneIn } from '@coxswain/protocol';
import { SIDE_BY_SIDE } from '../hosting/load-turns.ts';
import { type DeletePorts, type Deletion, deleteSession, hashesIn } from './delete-session.ts';
import { isAtRest } from './ended-record.ts';

/** What a sweep of sessions does. */
export interface SweepOptions {
  /** How long sessions of a tenant are kept after their last record, milliseconds; null: until they are deleted. */
  readonly keptMs: (tenant: string) => number | null;
  /** Sessions that one sweep deletes at most; what is refused does not count. */
  readonly max: number;
  readonly dryRun?: boolean | undefined;
  readonly by?: Actor | undefined;
}

/** A session that the sweep has deleted, would delete, or could not. */
export type SweptSession = { readonly ref: SessionRef; readonly deletion: Deletion };

/**
 * Deletes what is due, tenant by tenant; what runs is never due. Ends at `max`, and the next sweep goes on.
 * @throws what the ports throw; what was deleted until then is.
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
    for await (const ref of dueIn(ports, tenant, kept === null ? null : nowMs - kept)) {
      if (deleted >= max) return;
      const deletion = await deleteSession(ports, ref, { by, dryRun, reason });
      // One that is refused takes nobody's place: it is refused again tomorrow.
      if (deletion.status !== 'refused') deleted++;
      yield { ref, deletion };
    }
  }
}

async function* dueIn(
  ports: Pick<DeletePorts, 'journal' | 'purge'>,
  tenant: string,
  untilMs: number | null,
): AsyncGenerator<SessionRef, void, undefined> {
  let some: SessionRef[] = [];
  const due = async () => {
    const are = await Promise.all(some.map((ref) => isDue(ports, ref, untilMs)));
    const found = some.filter((_, i) => are[i]);
    some = [];
    return found;
  };
  for await (const ref of ports.journal.sessions(tenant)) {
    some.push(ref);
    if (some.length >= SIDE_BY_SIDE) yield* await due();
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
    // What cannot be read is deleted by name only.
    return false;
  }
}

/** What became of the blobs that were looked at. */
export interface SweptBlobs {
  /** Deleted; or, in a dry run, to be deleted. */
  readonly deleted: number;
  /** Kept, as a record refers to them. */
  readonly used: number;
  /** Kept, as they were stored too short a time ago to say; or, in a large store, left for the next sweep. */
  readonly left: number;
}

/** Blobs that one sweep looks at. */
const BLOBS_MAX = 100_000;

/**
 * Takes blobs away that nobody needs (SWEEP-1, SWEEP-2). Reads every record of the bus, unless there is nothing to look for.
 * @param only these hashes; all that the store has when left out.
 * @throws what the ports throw.
 */
export async function sweepBlobs(
  purge: Purge,
  { only, dryRun = false }: { readonly only?: ReadonlySet<string>; readonly dryRun?: boolean | undefined } = {},
): Promise<SweptBlobs> {
  if (only?.size === 0) return { deleted: 0, used: 0, left: 0 };
  const oldMs = (await purge.nowMs()) - BOUNDS.unusedBlobKeptMs;
  const unused = new Map<string, StoredBlob>();
  let left = 0;
  for await (const blob of purge.blobs()) {
    if (only && !only.has(blob.sha256)) continue;
    if (blob.storedAtMs > oldMs || unused.size >= BLOBS_MAX) left++;
    else unused.set(blob.sha256, blob);
  }
  const looked = unused.size;
  if (looked > 0) {
    for await (const record of purge.records()) {
      for (const sha256 of hashesIn(record)) unused.delete(sha256);
      if (unused.size === 0) break;
    }
  }
  let deleted = 0;
  for (const blob of unused.values()) if (dryRun || (await purge.blob(blob))) deleted++;
  return { deleted, used: looked - unused.size, left: left + unused.size - deleted };
}
