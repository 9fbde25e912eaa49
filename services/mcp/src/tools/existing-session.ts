/** Checks that a session exists: reading the journal of an unknown one would wait. */
import { type Client, type Session, SessionNotFoundError } from '@coxswain/client';
import type { JournalRecord } from '@coxswain/protocol';

/**
 * The session and its newest record.
 * @throws SessionNotFoundError, SessionDeletedError.
 */
export async function existingSession(
  client: Client,
  id: string,
): Promise<{ readonly session: Session; readonly newest: JournalRecord }> {
  const session = client.session(id);
  const newest = await session.newest();
  if (newest === null) throw new SessionNotFoundError(id);
  return { session, newest };
}
