import type { BusSession } from '@coxswain/client';
import type { SessionStatus } from '@coxswain/protocol';
import type { SessionFeed } from '../feed/mod.ts';

/** The read in progress of each followed session, of its state after record `n`. */
const READS = new WeakMap<SessionFeed, { readonly n: number; readonly status: Promise<SessionStatus> }>();

/**
 * Reads the state of a session after a record. The runs that follow the same session share a read in progress, because a
 * host answers few queries at a time.
 * @throws the errors of reading the state.
 */
export function stateAfter(feed: SessionFeed, session: BusSession, n: number): Promise<SessionStatus> {
  const shared = READS.get(feed);
  if (shared && shared.n >= n) return shared.status;
  const status = session.wire.stateAfter(n).finally(() => {
    if (READS.get(feed)?.status === status) READS.delete(feed);
  });
  READS.set(feed, { n, status });
  return status;
}
