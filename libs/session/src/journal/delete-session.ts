/**
 * Deletes a session, from outside of its host and under the journal's own fence.
 *
 * DELETE-1  The tombstone first, appended behind the newest record of an ended session: from there on no host writes to it, starts it
 *     again or forks it, whatever it holds in memory.
 * DELETE-2  Then whoever has the session in memory is told, so that it lets it go and keeps no snapshot any more.
 * DELETE-3  Forks that copy its records still are waited for: they keep what they were made of.
 * DELETE-4  Then timers and snapshots, and the records last: as long as there are any, the deletion is known to be unfinished,
 *     and whoever begins it again goes on here.
 * DELETE-5  What its records refer to in the store of blobs is swept afterwards: others may refer to it, too.
 */
import type { ActiveSessions, Blobs, Clock, Journal, Purge, StoredRecord } from '@coxswain/ports';
import {
  type Actor,
  type ErrorCode,
  type JournalRecord,
  partitionOf,
  type SessionRef,
  subjects,
  type Tombstone,
  tombstoneIn,
} from '@coxswain/protocol';
import { commit } from './commit.ts';
import { whyNotEnded } from './ended-record.ts';
import { forkUnderWay } from './fork-under-way.ts';
import { readRecord } from './load-session.ts';
import { sha256Hex } from './seal-record.ts';
import { tombstoneOf } from './tombstone-of.ts';

/** What deleting reads and takes away. */
export interface DeletePorts {
  readonly journal: Journal;
  readonly blobs: Pick<Blobs, 'get'>;
  readonly active: ActiveSessions;
  readonly purge: Purge;
  readonly clock: Clock;
  /** Has whoever has a session in memory look at its journal; resolves when one has, or none answers. Does not reject. */
  readonly tellHost: (ref: SessionRef) => Promise<void>;
}

/** How to delete. */
export interface DeleteOptions {
  readonly by?: Actor | undefined;
  readonly reason?: string | undefined;
  /** Also one whose journal cannot be read: it may be a later release's, at work. */
  readonly unreadable?: boolean | undefined;
  /** Changes nothing: says what would be deleted. */
  readonly dryRun?: boolean | undefined;
  /** How long forks of it that are under way are waited for. Default 60,000. */
  readonly forksWithinMs?: number | undefined;
}

/** What became of it. `completed`: a deletion that was begun earlier was brought to its end. */
export type Deletion =
  | { readonly status: 'deleted' | 'completed'; readonly tombstone: Tombstone; readonly blobs: readonly string[] }
  | { readonly status: 'would_delete'; readonly records: number }
  | { readonly status: 'refused'; readonly code: ErrorCode; readonly message: string };

const FORKS_WITHIN_MS = 60_000;
const MAYBE_WITHIN_MS = 5_000;
const LOOKED_AGAIN_MS = 250;

/**
 * Deletes a session that has ended.
 * @returns what became of it, with the hashes of what its records referred to; or why it is not deleted.
 * @throws what the ports throw: then it is deleted or not, and doing it again goes on where it stands.
 */
export async function deleteSession(
  ports: DeletePorts,
  ref: SessionRef,
  options: DeleteOptions = {},
): Promise<Deletion> {
  const placed = await placeTombstone(ports, ref, options);
  if ('status' in placed) return placed;
  const { tombstone, fence, isNew } = placed;
  if (!isNew && !(await ports.purge.hasBefore(ref, fence))) {
    // Also what a host has written meanwhile that had not heard of it.
    if (!options.dryRun) await ports.purge.snapshots(ref);
    return refused('session_deleted', `the session was already deleted at ${tombstone.deleted_at}`);
  }
  if (options.dryRun) return { status: 'would_delete', records: tombstone.records };
  if (await isNoted(ports.active, ref)) await ports.tellHost(ref);
  if (!(await forksAreDone(ports, ref, options.forksWithinMs ?? FORKS_WITHIN_MS))) {
    const message = `${ref.sessionId} is deleted, but a fork still copies its records; repeat the deletion to remove them`;
    return refused('session_being_copied', message);
  }
  await ports.purge.timers(ref);
  await ports.purge.snapshots(ref);
  const blobs = await blobsOf(ports.journal, ref, fence);
  await ports.purge.journalBefore(ref, fence);
  return { status: isNew ? 'deleted' : 'completed', tombstone, blobs };
}

interface Placed {
  readonly tombstone: Tombstone;
  readonly fence: number;
  readonly isNew: boolean;
}

/** The tombstone that stands, or a new one (DELETE-1). A record that comes in between is looked at like the one before. */
async function placeTombstone(ports: DeletePorts, ref: SessionRef, options: DeleteOptions): Promise<Placed | Deletion> {
  for (;;) {
    const last = await ports.journal.last(ref);
    if (!last) return refused('session_not_found', `there is no session ${ref.sessionId} of the tenant ${ref.tenant}`);
    const standing = tombstoneIn(last.bytes);
    if (standing) return { tombstone: standing, fence: last.fence, isNew: false };
    const looked = await lookAt(ports, ref, last, options.unreadable === true);
    if ('status' in looked) return looked;
    if (options.dryRun) return { status: 'would_delete', records: looked.n };
    const at = new Date(await ports.purge.nowMs()).toISOString();
    const { sealed } = tombstoneOf(ref, { ...looked, hash: sha256Hex(last.bytes) }, { at, ...options });
    const result = await commit(ports.journal, ports.clock, ref, sealed, last.fence, () => false);
    if (result.status === 'unavailable') return refused('journal_unavailable', result.cause);
    if (result.status !== 'stored') continue;
    return { tombstone: tombstoneIn(sealed.bytes) as Tombstone, fence: result.fence, isNew: true };
  }
}

/** How many records there are, or why they may not be deleted. */
async function lookAt(
  { journal, blobs }: Pick<DeletePorts, 'journal' | 'blobs'>,
  ref: SessionRef,
  last: StoredRecord,
  evenUnreadable: boolean,
): Promise<{ readonly n: number } | Deletion> {
  let record: JournalRecord;
  try {
    record = await readRecord(last.bytes, blobs);
  } catch (error) {
    const { code, message } = error as Error & { code?: ErrorCode };
    if (code === undefined || !UNREADABLE.has(code)) throw error;
    if (evenUnreadable) return { n: 0 };
    return refused(code, `whether ${ref.sessionId} has ended cannot be read: ${message}`);
  }
  const running = await whyNotEnded({ journal, blobs }, ref, record);
  return running === null ? { n: record.n } : refused('session_busy', running);
}

const UNREADABLE: ReadonlySet<string> = new Set<ErrorCode>(['record_unreadable', 'blob_missing']);

async function isNoted(active: ActiveSessions, ref: SessionRef): Promise<boolean> {
  const key = subjects.journal(ref);
  return (await active.list(partitionOf(ref.sessionId))).some((note) => subjects.journal(note.ref) === key);
}

/** Whether every fork that was begun before the tombstone has its records (DELETE-3). Later ones are refused by their host. */
async function forksAreDone(ports: DeletePorts, ref: SessionRef, withinMs: number): Promise<boolean> {
  const { clock } = ports;
  const fromMs = clock.monotonicMs();
  for (;;) {
    const found = await forkUnderWay(ports, ref);
    const waitedMs = clock.monotonicMs() - fromMs;
    // What has no record for so long is most likely an id that nobody has started: a fork of it would say what it lacks.
    if (found === 'no' || (found === 'maybe' && waitedMs >= Math.min(withinMs, MAYBE_WITHIN_MS))) return true;
    if (waitedMs >= withinMs) return false;
    await clock.sleep(LOOKED_AGAIN_MS);
  }
}

/** The hashes that stand in a session's records: more than its blobs, and all of them. */
async function blobsOf(journal: Journal, ref: SessionRef, fence: number): Promise<readonly string[]> {
  const found = new Set<string>();
  for await (const { bytes, fence: at } of journal.read(ref)) {
    if (at >= fence) break;
    for (const sha256 of hashesIn(bytes)) found.add(sha256);
  }
  return [...found];
}

const HASH = /"sha256":"([0-9a-f]{64})"/g;

/** What a record's bytes refer to by hash, whatever release wrote them. */
export function hashesIn(bytes: Uint8Array): string[] {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  // Most records refer to nothing, and need not become a string for that.
  if (!text.includes('"sha256":"')) return [];
  return Array.from(text.toString('latin1').matchAll(HASH), ([, sha256]) => sha256 as string);
}

function refused(code: ErrorCode, message: string): Extract<Deletion, { status: 'refused' }> {
  return { status: 'refused', code, message };
}
