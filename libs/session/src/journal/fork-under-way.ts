/** Finds unfinished forks of a session, among the sessions that hosts work on. */
import type { ActiveSessions, Blobs, Journal } from '@coxswain/ports';
import { type CopyOrigin, type ErrorCode, PARTITIONS, type SessionRef } from '@coxswain/protocol';
import { forEachConcurrent } from '../hosting/load-limit.ts';
import { unfinishedCopyAfter } from './copy-state.ts';
import { firstRecord } from './ended-record.ts';
import { readRecord } from './load-session.ts';

/** The result of {@link forkUnderWay}. */
export type ForkUnderWay = 'yes' | 'maybe' | 'no';

const COPIES_NOTHING: ReadonlySet<string> = new Set<ErrorCode>([
  'record_unreadable',
  'blob_missing',
  'session_deleted',
]);

/**
 * Whether a noted session is an unfinished fork of the session `origin` and lacks records of it. A host notes a session
 * before it writes the first record, so no fork is missed. `maybe`: a noted session without records may become such a
 * fork.
 * @throws errors of the ports.
 */
export async function forkUnderWay(
  ports: { readonly journal: Journal; readonly blobs: Pick<Blobs, 'get'>; readonly active: ActiveSessions },
  origin: SessionRef,
): Promise<ForkUnderWay> {
  const seen = new Set<ForkUnderWay>();
  const partitions = Array.from({ length: PARTITIONS }, (_, p) => p);
  await forEachConcurrent(partitions, async (p) => {
    for (const { ref } of await ports.active.list(p)) {
      if (seen.has('yes')) return;
      if (ref.tenant === origin.tenant && ref.sessionId !== origin.sessionId)
        seen.add(await copies(ports, ref, origin));
    }
  });
  if (seen.has('yes')) return 'yes';
  return seen.has('maybe') ? 'maybe' : 'no';
}

async function copies(
  ports: { readonly journal: Journal; readonly blobs: Pick<Blobs, 'get'> },
  ref: SessionRef,
  origin: SessionRef,
): Promise<ForkUnderWay> {
  try {
    const first = await firstRecord(ports, ref);
    if (!first) return 'maybe';
    const from = first.input.type === 'command' ? first.input.copied_from : undefined;
    if (from?.how !== 'fork' || from.session !== origin.sessionId) return 'no';
    const last = await ports.journal.last(ref);
    if (!last || (await readRecord(last.bytes, ports.blobs)).n >= from.n) return 'no';
    return (await isUnfinished(ports, ref)) ? 'yes' : 'no';
  } catch (error) {
    // An unreadable or deleted session copies nothing.
    if (COPIES_NOTHING.has((error as { code?: string }).code ?? '')) return 'no';
    throw error;
  }
}

/** Whether a fork that lacks records of its origin is unfinished. Otherwise its host has owned it with an error. */
async function isUnfinished(
  { journal, blobs }: { readonly journal: Journal; readonly blobs: Pick<Blobs, 'get'> },
  ref: SessionRef,
): Promise<boolean> {
  let copy: CopyOrigin | null = null;
  for await (const { bytes } of journal.read(ref)) {
    copy = unfinishedCopyAfter(copy, await readRecord(bytes, blobs), ref.sessionId);
    if (!copy) return false;
  }
  return true;
}
