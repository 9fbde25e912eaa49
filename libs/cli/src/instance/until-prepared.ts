/** Waits for an instance that another process is starting: its server responds before its streams exist. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { BusClient } from '@coxswain/client';

const POLL_MS = 100;

/** The bus of an instance, and a signal that aborts when the instance ends. */
export interface JoinedInstance {
  readonly client: Pick<BusClient, 'busInfo'>;
  readonly gone: AbortSignal;
}

/**
 * Waits until the instance has created its streams.
 * @param untilMs the latest time, as `Date.now()`. Then the instance is used as it is: the first request that needs a
 * missing stream fails.
 * @returns false if the instance ended first.
 * @throws the errors of the server.
 */
export async function untilPrepared({ client, gone }: JoinedInstance, untilMs: number): Promise<boolean> {
  while (!gone.aborted) {
    const { streams } = await client.busInfo();
    if (streams.every(({ present }) => present) || Date.now() > untilMs) return true;
    await sleep(POLL_MS);
  }
  return false;
}
