/** Ends a demo that was left: its folder goes, and no session may stay behind that needs it. */
import type { Session } from '@coxswain/client';

/** A call has five seconds to stop, and its tools some to close. */
const ENDED_WITHIN_MS = 15_000;

/**
 * Cancels the run and waits for its end. Never rejects: a failure is reported, and the command ends.
 * @param withinMs how long to wait.
 */
export async function cancelAndWait(
  session: Pick<Session, 'id' | 'cancel' | 'result'>,
  say: (text: string) => void,
  withinMs = ENDED_WITHIN_MS,
): Promise<void> {
  say('leaving: the demo is cancelled');
  const late = AbortSignal.timeout(withinMs);
  try {
    await session.cancel('the demo was stopped');
    await session.result({ signal: late });
  } catch (error) {
    const why = late.aborted ? `it still runs after ${withinMs} ms` : (error as Error).message;
    say(`session ${session.id} did not end: ${why}`);
  }
}
