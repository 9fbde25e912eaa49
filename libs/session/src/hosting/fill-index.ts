/**
 * Keeps the index of sessions: creates it again if it was lost, repeats writes that failed (index-writes.ts), and gives
 * an entry to each session in this host's partitions that has a journal and no entry: after an upgrade, after a restore
 * of journals alone, and if the index was lost. Until then lists show these sessions last (LIST-2, libs/client,
 * newest-sessions.ts). A session that is in memory, or that does not load although its stores answer
 * (`JOURNAL_CODES`), gets a mark instead.
 *
 * An entry is stored only if there is still none: a host that works on the session marks it first (INDEX-2, libs/ports,
 * session-index.ts).
 */
import type { Clock, Log, SessionIndex } from '@coxswain/ports';
import { deletedSessionOf, indexEntryOf, type SessionRef, tombstoneIn } from '@coxswain/protocol';
import { type LoadPorts, loadSession, readRecord } from '../journal/load-session.ts';
import { JOURNAL_CODES } from '../runner/session-lifecycle.ts';
import { statusOf } from '../runner/session-status.ts';
import type { IndexWrites } from './index-writes.ts';
import { forEachConcurrent } from './load-limit.ts';

/** Sessions that are read at a time: few, as commands come first. */
const AT_ONCE = 4;
/**
 * Between two checks of the index, milliseconds. The first one is this long after the start, so that other hosts get their
 * partitions first.
 */
const CHECK_EVERY_MS = 5_000;
/** Between the starts of two searches in the same index, milliseconds. After a failed one: `AGAIN_MS` from its end. */
const APART_MS = 600_000;
const AGAIN_MS = 60_000;

/** The ports of the search. */
export interface FillPorts extends LoadPorts {
  readonly index?: SessionIndex | undefined;
  readonly log: Log;
  readonly clock: Pick<Clock, 'sleep' | 'monotonicMs'>;
}

/**
 * Which sessions are in this host's partitions, and which are in its memory: the latter are marked (INDEX-2,
 * libs/ports, session-index.ts).
 */
export interface HostedSessions {
  isAssigned(ref: SessionRef): boolean;
  isHere(ref: SessionRef): boolean;
}

/**
 * Checks the index until the signal aborts. Fills it soon after the start of the host, after a loss of the index, and
 * every ten minutes. Does nothing without an index. Contract: does not reject.
 */
export async function keepIndexFilled(
  ports: FillPorts,
  writes: IndexWrites,
  sessions: HostedSessions,
  ended: AbortSignal,
): Promise<void> {
  const { index, clock, log } = ports;
  if (!index) return;
  let known: string | null = null;
  let dueMs = 0;
  // A search may take minutes. Meanwhile the checks go on.
  let isFilling = false;
  for (;;) {
    await clock.sleep(CHECK_EVERY_MS, ended);
    if (ended.aborted) return;
    try {
      const now = await index.ensure();
      if (known !== null && now !== known) log.warn({}, 'the index of sessions was lost: it is filled again');
      if (now !== known) dueMs = clock.monotonicMs();
      known = now;
      // Before the search: an owed mark replaces an entry that is out of date.
      await writes.repeatOwed();
    } catch (error) {
      writes.failed(error);
      continue;
    }
    if (isFilling || clock.monotonicMs() < dueMs) continue;
    isFilling = true;
    dueMs = clock.monotonicMs() + APART_MS;
    void fillIndex(ports, index, sessions, ended).then((isFilled) => {
      isFilling = false;
      if (!isFilled) dueMs = Math.min(dueMs, clock.monotonicMs() + AGAIN_MS);
    });
  }
}

/** Stores the missing entries. @returns false after a failure: the host tries again later. */
async function fillIndex(
  ports: FillPorts,
  index: SessionIndex,
  sessions: HostedSessions,
  ended: AbortSignal,
): Promise<boolean> {
  const { log } = ports;
  try {
    const missing: { readonly ref: SessionRef; at: string }[] = (await index.missing())
      .filter((ref) => sessions.isAssigned(ref))
      .map((ref) => ({ ref, at: '' }));
    if (missing.length > 0)
      log.info({ sessions: missing.length }, 'sessions without an entry in the index of sessions get one');
    const find = async (one: { readonly ref: SessionRef; at: string }) => {
      if (!ended.aborted) one.at = await newestAt(ports, one.ref);
    };
    await forEachConcurrent(missing, find, AT_ONCE);
    missing.sort((one, other) => (one.at < other.at ? -1 : Number(one.at > other.at)));
    const enter = async ({ ref }: { readonly ref: SessionRef }) => {
      if (ended.aborted) return;
      if (sessions.isHere(ref)) await index.mark(ref);
      else await fill(ports, index, ref);
    };
    await forEachConcurrent(missing, enter, AT_ONCE);
    return true;
  } catch (error) {
    log.warn(
      { error: (error as Error).message },
      'the index of sessions cannot be filled now; the host tries again later',
    );
    return false;
  }
}

/** When the newest record or the tombstone was written; empty without a record, and for an unreadable one. */
async function newestAt({ journal, blobs }: FillPorts, ref: SessionRef): Promise<string> {
  try {
    const newest = await journal.last(ref);
    if (!newest) return '';
    return tombstoneIn(newest.bytes)?.deleted_at ?? (await readRecord(newest.bytes, blobs)).at;
  } catch (error) {
    if (isUnloadable(error)) return '';
    throw error;
  }
}

async function fill(ports: FillPorts, index: SessionIndex, ref: SessionRef): Promise<void> {
  const newest = await ports.journal.last(ref);
  const tombstone = newest && tombstoneIn(newest.bytes);
  if (tombstone) return void (await index.put(ref, deletedSessionOf(ref.sessionId, tombstone), 0));
  try {
    const { actor, n, at } = await loadSession(ports, ref, false);
    if (n > 0) await index.put(ref, indexEntryOf(statusOf(actor.state, n, at)), 0);
  } catch (error) {
    if (!isUnloadable(error)) throw error;
    // Lists read the newest record of a marked session, or report why it cannot be read.
    await index.mark(ref);
  }
}

/** Whether a session does not load, although its stores answer. It must not keep the others from an entry. */
function isUnloadable(error: unknown): boolean {
  return JOURNAL_CODES.has((error as { readonly code?: unknown }).code as string);
}
