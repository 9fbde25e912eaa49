/** A session's status: from a host, or from its journal when no host answers. */
import { NoHostError, type Session } from '@coxswain/client';
import type { SessionStatus } from '@coxswain/protocol';
import type { OpenBus } from './open-bus.ts';

/**
 * The time limit of a query, in ms. A running host answers within milliseconds; a host that has just started reads the
 * journal first.
 */
const QUERY_MS = 3_000;

/**
 * The status after the newest record, or after record `at`.
 * @throws SessionNotFoundError for an unknown session; CliError for an `at` after its newest record.
 */
export async function sessionStatus(bus: OpenBus, session: Session, at?: number): Promise<SessionStatus> {
  // A host knows only the newest state.
  if (bus.hosted && at === undefined) {
    try {
      return await session.wire.state({ timeoutMs: QUERY_MS });
    } catch (error) {
      if (!(error instanceof NoHostError)) throw error;
    }
  }
  const { foldStatus } = await import('./fold-status.ts');
  return foldStatus(bus, session, at);
}
