/** Retries: the delays between attempts, and stores that are asked again until they acknowledge. */
import type { Clock } from '@coxswain/ports';

/** The first delay between attempts and the longest, in milliseconds. Each delay is twice the one before. */
export interface BackOff {
  readonly firstMs: number;
  readonly maxMs: number;
}

/** The back-off of stores outside the journal. */
const STORE_BACK_OFF: BackOff = { firstMs: 250, maxMs: 30_000 };

/** The delay after so many failed attempts, in milliseconds. @param failures is at least 1. */
export function delayAfter(failures: number, { firstMs, maxMs }: BackOff): number {
  return Math.min(firstMs * 2 ** (failures - 1), maxMs);
}

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
