/** An instance that another process is just starting: its server answers before its streams are there. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { BusClient } from '@coxswain/client';

const LOOKED_AGAIN_MS = 100;

/** The bus of an instance, and whether the instance has ended. */
export interface JoinedInstance {
  readonly client: Pick<BusClient, 'busInfo'>;
  readonly gone: AbortSignal;
}

/**
 * Waits until the instance has made its streams.
 * @param untilMs then it is used as it is: what is missing is said by the first request that needs it.
 * @returns false if the instance ended before.
 * @throws what asking the server throws.
 */
export async function untilPrepared({ client, gone }: JoinedInstance, untilMs: number): Promise<boolean> {
  while (!gone.aborted) {
    const { streams } = await client.busInfo();
    if (streams.every(({ present }) => present) || Date.now() > untilMs) return true;
    await sleep(LOOKED_AGAIN_MS);
  }
  return false;
}
