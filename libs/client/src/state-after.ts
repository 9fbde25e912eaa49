/** What a session is doing after a record that was seen: a host may answer from before it has taken up what it has just written. */
import type { SessionStatus } from '@coxswain/protocol';
import type { Session } from './session-handle.ts';

const ASKED_EVERY_MS = 25;
const WITHIN_MS = 5_000;

/**
 * Asks until the answer is of this record or a later one.
 * @param n the record, by its number.
 * @param signal ends the asking.
 * @returns in the form of the wire what was answered last, where none was of it within five seconds.
 * @throws what {@link Session.state} throws, and the signal's reason.
 */
export async function stateAfter(session: Session, n: number, signal?: AbortSignal): Promise<SessionStatus> {
  const untilMs = performance.now() + WITHIN_MS;
  for (;;) {
    const status = await session.wire.state();
    if (status.n >= n || performance.now() > untilMs) return status;
    signal?.throwIfAborted();
    await new Promise((resolve) => setTimeout(resolve, ASKED_EVERY_MS));
  }
}
