/** Retries of stores until they acknowledge. */

import type { Clock } from '@coxswain/ports';
import { type BackOff, delayAfter } from '@coxswain/protocol';

/** The back-off of stores outside the journal. */
const STORE_BACK_OFF: BackOff = { firstMs: 250, maxMs: 30_000 };

/** What is to be stored, and until when. */
export interface Storing {
  /** Stores it. Rejects where the store did not acknowledge it. */
  store(): Promise<void>;
  /** Whether it still has to be stored. */
  isOpen(): boolean;
  /** Logs a failed attempt. */
  onFailure(error: Error): void;
}

/**
 * Stores something until the store acknowledges it, it is no longer open, or the signal aborts. The number of attempts has
 * no bound, because the session depends on it; the delays have one. Never rejects.
 */
export async function storeWithRetries(clock: Clock, signal: AbortSignal, storing: Storing): Promise<void> {
  for (let failures = 1; storing.isOpen() && !signal.aborted; failures++) {
    try {
      return await storing.store();
    } catch (error) {
      storing.onFailure(error as Error);
    }
    await clock.sleep(delayAfter(failures, STORE_BACK_OFF), signal);
  }
}
