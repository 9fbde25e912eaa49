/**
 * Deletes a session from outside of its host, with an append at a fence (libs/ports, journal.ts). The command `delete` takes
 * another way: the machine decides it (`decideDelete` in libs/turn), and the session's host only appends the tombstone
 * (`JournalWriter.#delete`). Then the retention job (retention-job.ts) completes the deletion by {@link deleteSession}.
 *
 * DELETE-1  The tombstone comes first, after the newest record of an ended session, or on request of an unreadable one. From
 *           then on, no host can write to the session, restart it or fork it. Only a mark in the index precedes it.
 * DELETE-2  Then a host that has the session in memory gets a message, so that it unloads the session. A snapshot that
 *           it has stored before is removed (DELETE-4).
 * DELETE-3  The deletion waits for unfinished forks that still copy its records, up to `forksWithinMs`.
 * DELETE-4  Then timers and snapshots are removed, the entry in the index is replaced, and the records are removed last. As
 *           long as records exist, the deletion is known to be unfinished, and a repetition continues it.
 * DELETE-5  The deletion removes no blobs, because other sessions may refer to them. A later sweep removes those
 *           without a reference.
 */
import type { ActiveSessions, Blobs, Clock, Journal, Purge, SessionIndex, StoredRecord } from '@coxswain/ports';
import {
  type Actor,
  deletedSessionOf,
  type ErrorCode,
  partitionOf,
  type SessionRef,
  subjects,
  type Tombstone,
  tombstoneIn,
} from '@coxswain/protocol';
import { appendUntilKnown, sha256Hex } from './append-record.ts';
import { whyNotEnded } from './ended-record.ts';
import { forkUnderWay } from './fork-under-way.ts';
import { readRecord } from './load-session.ts';
import { tombstoneOf } from './tombstone-of.ts';

/** Ports that a deletion reads and writes. */
export interface DeletePorts {
  readonly journal: Journal;
  readonly blobs: Pick<Blobs, 'get'>;
  readonly active: ActiveSessions;
  /** Without it, lists are read from the journals. */
  readonly index?: SessionIndex | undefined;
  readonly purge: Purge;
  readonly clock: Clock;
  /** Asks the host of a session to check its journal; resolves when a host has, or when none answers. Does not reject. */
  readonly notifyHost: (ref: SessionRef) => Promise<void>;
}

/** Options of a deletion. */
export interface DeleteOptions {
  readonly by?: Actor | undefined;
  readonly reason?: string | undefined;
  /**
   * Whether to delete a session although a record that shows whether it has ended is unreadable: its newest record, or its
   * first one if the newest shows no end. Careful: a later release may have written that record.
   */
  readonly unreadable?: boolean | undefined;
  /** Whether to change nothing and only report. */
  readonly dryRun?: boolean | undefined;
  /** How long to wait for unfinished forks, in milliseconds. Default 60,000. */
  readonly forksWithinMs?: number | undefined;
}

/**
 * The result. `completed`: an earlier, unfinished deletion was completed. `would_delete`: in a dry run, which has
 * changed nothing, instead of the first two. `blobs`: hashes of blobs that the removed records referred to.
 */
export type Deletion =
  | { readonly status: 'deleted' | 'completed'; readonly tombstone: Tombstone; readonly blobs: readonly string[] }
  | { readonly status: 'would_delete'; readonly records: number }
  | { readonly status: 'refused'; readonly code: ErrorCode; readonly message: string };

const FORKS_WITHIN_MS = 60_000;
const MAYBE_WITHIN_MS = 5_000;
const LOOKED_AGAIN_MS = 250;

/**
 * Deletes an ended session, or on request one of which damaged records do not show whether it has ended. Completes an
 * unfinished deletion.
 * @returns the result; or the reason for a refusal, by its code:
 *   - `session_being_copied`: the session is deleted, but this call has removed nothing. A repetition continues.
 *   - `journal_unavailable`: the session may be deleted, as the result of the append is unknown. A repetition finds out.
 *   - `session_deleted`: an earlier deletion was complete. A snapshot that a host has stored since is removed, except
 *     in a dry run.
 *   - any other code: this call has changed no records. The index may have a mark in place of the session's entry.
 * @throws errors of the ports: the session may be deleted in part; a repetition continues.
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
    // A host may have stored a snapshot since the earlier deletion.
    if (!options.dryRun) await ports.purge.snapshots(ref);
    return refused('session_deleted', `the session was already deleted at ${tombstone.deleted_at}`);
  }
  if (options.dryRun) return { status: 'would_delete', records: tombstone.records };
  if (await isNoted(ports.active, ref)) await ports.notifyHost(ref);
  if (!(await forksAreDone(ports, ref, options.forksWithinMs ?? FORKS_WITHIN_MS))) {
    const message = `${ref.sessionId} is deleted, but a fork still copies its records; repeat the deletion to remove them`;
    return refused('session_being_copied', message);
  }
  await ports.purge.timers(ref);
  await ports.purge.snapshots(ref);
  const blobs = await blobsOf(ports.journal, ref, fence);
  await showDeleted(ports.index, ref, tombstone);
  await ports.purge.journalBefore(ref, fence);
  return { status: isNew ? 'deleted' : 'completed', tombstone, blobs };
}

/** Stores the entry of a deleted session in the index, for lists. */
async function showDeleted(index: SessionIndex | undefined, ref: SessionRef, tombstone: Tombstone): Promise<void> {
  await index?.put(ref, deletedSessionOf(ref.sessionId, tombstone), await index.mark(ref));
}

interface Placed {
  readonly tombstone: Tombstone;
  readonly fence: number;
  readonly isNew: boolean;
}

/**
 * The existing tombstone, or a new one (DELETE-1); or a refusal, or the result of a dry run. If another record is
 * appended meanwhile, that record is checked as well.
 */
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
    // The mark precedes the append: an entry would show the session as it was before the tombstone (INDEX-2,
    // libs/ports, session-index.ts).
    await ports.index?.mark(ref);
    const result = await appendUntilKnown(ports.journal, ports.clock, ref, sealed, last.fence, () => false);
    if (result.status === 'unavailable') return refused('journal_unavailable', result.cause);
    if (result.status !== 'stored') continue;
    return { tombstone: tombstoneIn(sealed.bytes) as Tombstone, fence: result.fence, isNew: true };
  }
}

/** The number of records, 0 if the newest one is unreadable and the session may be deleted; or why it may not be. */
async function lookAt(
  { journal, blobs }: Pick<DeletePorts, 'journal' | 'blobs'>,
  ref: SessionRef,
  last: StoredRecord,
  evenUnreadable: boolean,
): Promise<{ readonly n: number } | Deletion> {
  let n = 0;
  try {
    const record = await readRecord(last.bytes, blobs);
    n = record.n;
    const running = await whyNotEnded({ journal, blobs }, ref, record);
    return running === null ? { n } : refused('session_busy', running);
  } catch (error) {
    const { code, message } = error as Error & { code?: ErrorCode };
    if (code === undefined || !RECORD_CODES.has(code)) throw error;
    if (evenUnreadable) return { n };
    return refused(code, `whether ${ref.sessionId} has ended cannot be read: ${message}`);
  }
}

/** Codes of a record that is damaged, incomplete or of another release, as opposed to one that cannot be reached. */
const RECORD_CODES: ReadonlySet<string> = new Set<ErrorCode>(['record_unreadable', 'blob_missing']);

async function isNoted(active: ActiveSessions, ref: SessionRef): Promise<boolean> {
  const key = subjects.journal(ref);
  return (await active.list(partitionOf(ref.sessionId))).some((note) => subjects.journal(note.ref) === key);
}

/**
 * Whether each fork that started before the tombstone has all its records (DELETE-3). Hosts reject later forks.
 * @returns false where one lacks records after `withinMs`.
 */
async function forksAreDone(ports: DeletePorts, ref: SessionRef, withinMs: number): Promise<boolean> {
  const { clock } = ports;
  const fromMs = clock.monotonicMs();
  for (;;) {
    const found = await forkUnderWay(ports, ref);
    const waitedMs = clock.monotonicMs() - fromMs;
    // A session without records after 5 s most likely never becomes a fork; if it does, it finds no origin.
    if (found === 'no' || (found === 'maybe' && waitedMs >= Math.min(withinMs, MAYBE_WITHIN_MS))) return true;
    if (waitedMs >= withinMs) return false;
    await clock.sleep(LOOKED_AGAIN_MS);
  }
}

/** All hashes in a session's records before `fence`, among them the hashes of its blobs. */
async function blobsOf(journal: Journal, ref: SessionRef, fence: number): Promise<readonly string[]> {
  const found = new Set<string>();
  for await (const { bytes, fence: at } of journal.read(ref)) {
    if (at >= fence) break;
    for (const sha256 of hashesIn(bytes)) found.add(sha256);
  }
  return [...found];
}

const HASH = /"sha256":"([0-9a-f]{64})"/g;

/** The hashes that a record's bytes refer to, for records of any release. */
export function hashesIn(bytes: Uint8Array): string[] {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  // Most records refer to no blob and need not be decoded.
  if (!text.includes('"sha256":"')) return [];
  return Array.from(text.toString('latin1').matchAll(HASH), ([, sha256]) => sha256 as string);
}

function refused(code: ErrorCode, message: string): Extract<Deletion, { status: 'refused' }> {
  return { status: 'refused', code, message };
}
