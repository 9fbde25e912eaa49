/** Begins on a bus that is not answering just now: its servers are choosing a leader, or one of them is coming back. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '@coxswain/ports';
import { NatsUnavailableError, NobodyListensError } from './nats-status.ts';

/** Longer than a cluster takes to choose a leader, shorter than the patience of whoever has started this. */
const PATIENCE_MS = 45_000;
const PAUSE_MS = 500;

/**
 * Asks again while nobody answers, for 45 seconds. What the bus refuses is not asked again, nor what it says that nobody
 * there takes.
 * @param ask may be called many times.
 * @throws what the last call threw.
 */
export async function whenAnswered<T>(ask: () => Promise<T>, log: Log): Promise<T> {
  const giveUpAtMs = performance.now() + PATIENCE_MS;
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      const isSilence = error instanceof NatsUnavailableError && !(error instanceof NobodyListensError);
      if (!isSilence || performance.now() > giveUpAtMs) throw error;
      log.warn({ error: error.message }, 'NATS does not respond; retrying');
    }
    await sleep(PAUSE_MS);
  }
}
