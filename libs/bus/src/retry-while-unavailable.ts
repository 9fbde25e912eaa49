/** Retries requests while NATS does not respond, for example during a leader election or the restart of a server. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { BusLog } from './connection-changes.ts';
import { busErrorOf, NatsUnavailableError, NoRespondersError } from './errors.ts';

/** The retries of a request. */
export interface Retries {
  /**
   * Time limit of all attempts, milliseconds. The last attempt ends at this limit. Default 10,000: longer than a leader
   * election, which takes six seconds after a server was killed.
   */
  readonly withinMs?: number;
  /** Pause between two attempts, milliseconds. Default 250. */
  readonly pauseMs?: number;
  /** Whether this error allows a retry; default: unless it is final. Its own error ends the request. */
  retriesAfter?(error: NatsUnavailableError): boolean | Promise<boolean>;
}

/**
 * Retries a request while NATS does not respond.
 * @param request may be called many times.
 * @throws the last error of `request`, errors of the NATS library as errors of this package; NatsUnavailableError at
 *   the time limit; errors of `retriesAfter`.
 */
export async function retryRequest<T>(request: () => Promise<T>, retries: Retries = {}): Promise<T> {
  const { withinMs = 10_000, pauseMs = 250, retriesAfter = (error) => !error.isFinal } = retries;
  const endsAtMs = performance.now() + withinMs;
  for (;;) {
    try {
      return await within(endsAtMs - performance.now(), request());
    } catch (failure) {
      const error = busErrorOf(failure) ?? failure;
      if (!(error instanceof NatsUnavailableError) || !(await retriesAfter(error))) throw error;
      if (performance.now() + pauseMs >= endsAtMs) throw error;
    }
    await sleep(pauseMs);
  }
}

/**
 * Time limit of the retries of a starting service, milliseconds: longer than a leader election, shorter than the
 * timeouts of service managers.
 */
const START_WITHIN_MS = 45_000;
const START_PAUSE_MS = 500;

/**
 * Retries while NATS does not answer, for 45 seconds. A rejected request and "no responders" are not retried.
 * @param request may be called many times.
 * @throws the error of the last call.
 */
export async function retryWhileUnavailable<T>(request: () => Promise<T>, log: BusLog): Promise<T> {
  return retryRequest(request, {
    withinMs: START_WITHIN_MS,
    pauseMs: START_PAUSE_MS,
    retriesAfter(error) {
      if (error.isFinal || error instanceof NoRespondersError) return false;
      log.warn({ error: error.message }, 'NATS does not respond; retrying');
      return true;
    },
  });
}

/** Resolves with the answer. @throws NatsUnavailableError after `ms`. */
export async function within<T>(ms: number, answer: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const fail = () => reject(new NatsUnavailableError('NATS does not respond in time'));
    timer = setTimeout(fail, Math.max(0, ms));
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
    // A late failure must not become an unhandled rejection.
    answer.catch(() => undefined);
  }
}
