/** Ends a demo that was left: its folder goes, and no session may stay behind that needs it. */
import type { Session } from '@coxswain/client';

/** A call has five seconds to stop, and its tools some to close. */
const ENDED_WITHIN_MS = 15_000;

/** Cancels the run and waits for its end, but not for ever. Never rejects: it is on the way out. */
export async function cancelAndWait(
  session: Pick<Session, 'id' | 'cancel' | 'result'>,
  say: (text: string) => void,
  withinMs = ENDED_WITHIN_MS,
): Promise<void> {
  say('leaving: the demo is cancelled');
  try {
    await session.cancel('the demo was left');
    await session.result({ signal: AbortSignal.timeout(withinMs) });
  } catch (error) {
    say(`session ${session.id} did not end: ${(error as Error).message}`);
  }
}
