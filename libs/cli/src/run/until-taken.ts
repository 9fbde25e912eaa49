/** Commands that were stored while no host ran their session. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { BusSession } from '@coxswain/client';

const LOOKED_AGAIN_MS = 50;
const TAKEN_WITHIN_MS = 10_000;

/**
 * Waits until a host of this process has processed the commands that a session has in store: an approval that one of them
 * decides then waits for no person. Gives up after 10 s: a session that never takes its commands is shown as it is.
 * @throws what asking the store throws.
 */
export async function untilTaken(session: Pick<BusSession, 'storedCommands'>, signal: AbortSignal): Promise<void> {
  const untilMs = performance.now() + TAKEN_WITHIN_MS;
  while (!signal.aborted && performance.now() < untilMs) {
    if ((await session.storedCommands()) === 0) return;
    await sleep(LOOKED_AGAIN_MS);
  }
}
