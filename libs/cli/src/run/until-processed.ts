/** Waits for commands that were stored while no host ran their session. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { BusSession } from '@coxswain/client';

const POLL_MS = 50;
const PROCESS_TIMEOUT_MS = 10_000;

/**
 * Waits until a host in this process has processed the stored commands of a session: one of them may decide an
 * approval. Gives up after 10 s, so that a session that never processes its commands is still shown.
 * @throws the errors of the store.
 */
export async function untilProcessed(session: Pick<BusSession, 'storedCommands'>, signal: AbortSignal): Promise<void> {
  const untilMs = performance.now() + PROCESS_TIMEOUT_MS;
  while (!signal.aborted && performance.now() < untilMs) {
    if ((await session.storedCommands()) === 0) return;
    await sleep(POLL_MS);
  }
}
