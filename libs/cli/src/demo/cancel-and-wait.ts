/** Cancels a demo that the user leaves. The demo's folder is removed, so no session may remain that needs it. */
import type { Session } from '@coxswain/client';

/** In ms. A call has five seconds to stop, and its tools need time to close. */
const END_TIMEOUT_MS = 15_000;

/**
 * Cancels the run and waits for its end. Never rejects: a failure is printed.
 * @param withinMs how long to wait, in ms.
 */
export async function cancelAndWait(
  session: Pick<Session, 'id' | 'cancel' | 'result'>,
  say: (text: string) => void,
  withinMs = END_TIMEOUT_MS,
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
