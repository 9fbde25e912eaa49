/** Repeats requests to a store during an outage: an unavailable bus is never a final outcome. */
import type { Blobs, Clock } from '@coxswain/ports';
import { type BackOff, delayAfter, type ErrorCode } from '@coxswain/protocol';

const BACK_OFF: BackOff = { firstMs: 250, maxMs: 5_000 };

const UNAVAILABLE: ErrorCode = 'nats_unreachable';

/** Whether the error means that a store did not answer: no connection, no leader, or a timeout. */
export function isUnavailable(error: unknown): boolean {
  return (error as { readonly code?: unknown } | null)?.code === UNAVAILABLE;
}

/**
 * Repeats a request while the store is unavailable, with back-off (0.25 s, doubled up to 5 s). There is no total bound
 * on purpose: during an outage the session cannot continue in any case. An abort of the signal ends the repetition.
 * @returns the answer; null after an abort, if no attempt was answered.
 * @throws every other error of the request.
 */
export async function untilAnswered<T>(clock: Clock, signal: AbortSignal, ask: () => Promise<T>): Promise<T | null> {
  for (let failures = 1; ; failures++) {
    try {
      return await ask();
    } catch (error) {
      if (!isUnavailable(error)) throw error;
    }
    await clock.sleep(delayAfter(failures, BACK_OFF), signal);
    if (signal.aborted) return null;
  }
}

/**
 * A blob store whose reads and puts wait for an unavailable object store ({@link untilAnswered}). If the signal ends the
 * wait, one last attempt decides.
 */
export function retryingBlobs(blobs: Blobs, clock: Clock, signal: AbortSignal): Blobs {
  const retried = async <T>(ask: () => Promise<T>): Promise<T> => {
    const answer = await untilAnswered(clock, signal, async () => ({ value: await ask() }));
    return answer ? answer.value : ask();
  };
  return {
    put: (sha256, bytes) => retried(() => blobs.put(sha256, bytes)),
    get: (sha256) => retried(() => blobs.get(sha256)),
  };
}
