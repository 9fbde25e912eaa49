/** Retries requests while NATS does not answer, for example during a leader election or the restart of a server. */
import { setTimeout as sleep } from 'node:timers/promises';
import { NatsUnavailableError, NoRespondersError } from '@coxswain/bus';
import type { Log } from '@coxswain/ports';

/**
 * Time limit of the retries, milliseconds: longer than a leader election, shorter than the timeouts of service
 * managers.
 */
const PATIENCE_MS = 45_000;
const PAUSE_MS = 500;

/**
 * Retries while NATS does not answer, for 45 seconds. A rejected request and "no responders" are not retried.
 * @param ask the request. It may be called many times.
 * @throws the error of the last call.
 */
export async function whenAnswered<T>(ask: () => Promise<T>, log: Log): Promise<T> {
  const giveUpAtMs = performance.now() + PATIENCE_MS;
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      const isSilence = error instanceof NatsUnavailableError && !(error instanceof NoRespondersError);
      if (!isSilence || performance.now() > giveUpAtMs) throw error;
      log.warn({ error: error.message }, 'NATS does not respond; retrying');
    }
    await sleep(PAUSE_MS);
  }
}
