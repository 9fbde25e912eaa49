/** A session's state, computed from its journal in this process. Commands import this module only when they need it. */
import { createMemoryBus } from '@coxswain/adapter-memory';
import { type Session, SessionNotFoundError } from '@coxswain/client';
import type { SessionStatus } from '@coxswain/protocol';
import { type LoadedSession, loadSession, statusOf } from '@coxswain/session';
import { recordNotThere } from '../line/mod.ts';
import type { OpenBus } from './open-bus.ts';

/** The status after record `at`, or after the newest record. */
export async function foldStatus(bus: OpenBus, session: Session, at?: number): Promise<SessionStatus> {
  const folded = await foldedState(bus, session, at);
  return statusOf(folded.state, folded.n, folded.at);
}

/**
 * The machine's state after record `at`, or after the newest record, with that record's number and time.
 * @throws SessionNotFoundError if there is no record; CliError if there is no record `at`.
 */
export async function foldedState(
  bus: OpenBus,
  session: Session,
  at = Number.POSITIVE_INFINITY,
): Promise<{ readonly state: LoadedSession['actor']['state']; readonly n: number; readonly at: string }> {
  const memory = createMemoryBus();
  try {
    let fence = 0;
    for await (const { record, bytes } of bus.client.session(session.id).journal()) {
      if (record.n > at) break;
      const stored = await memory.journal.append(session.ref, bytes, fence);
      if (stored.status === 'stored') fence = stored.fence;
    }
    if (fence === 0) throw new SessionNotFoundError(session.id);
    const blobs = { get: (sha256: string) => bus.client.blob(sha256), put: memory.blobs.put };
    const { journal, snapshots, publisher } = memory;
    const loaded = await loadSession({ journal, snapshots, blobs, publisher }, session.ref, true);
    if (Number.isFinite(at) && loaded.n < at) throw recordNotThere(`--at ${at}`, loaded.n);
    return { state: loaded.actor.state, n: loaded.n, at: loaded.at };
  } finally {
    memory.close();
  }
}
