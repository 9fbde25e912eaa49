/** Starts an instance on a state directory when no command uses that directory. */
import { setTimeout as sleep } from 'node:timers/promises';
import { StateDirInUseError } from '@coxswain/adapter-embedded-server';

/** How to wait. */
export interface WaitOptions {
  /** The longest wait for a command, in ms. Without a command as the holder, there is no wait. */
  readonly waitMs: number;
  /** Resolves when the start is no longer wanted. */
  readonly stopped: Promise<unknown>;
  /** Called once if it waits. */
  say(text: string): void;
}

const POLL_MS = 500;

/**
 * Starts the instance. A command such as `cox run` runs its own server on the directory while it works, and other
 * commands may join that server. A long-running instance waits for its end.
 * @returns null if the start is no longer wanted.
 * @throws StateDirInUseError if the directory is not free in time, or has a long-running holder; the errors of `start`.
 */
export async function whenFree<T>(start: () => Promise<T>, { waitMs, stopped, say }: WaitOptions): Promise<T | null> {
  const untilMs = performance.now() + waitMs;
  let isOver = false;
  let hasNotified = false;
  void stopped.then(() => {
    isOver = true;
  });
  for (;;) {
    try {
      return await start();
    } catch (error) {
      if (!(error instanceof StateDirInUseError) || error.holder?.passing !== true) throw error;
      if (performance.now() >= untilMs) throw error;
      const { stateDir, pid, holder } = error;
      if (!hasNotified) say(`${holder.title} (process ${pid}) uses ${stateDir}; cox up starts after it has ended\n`);
      hasNotified = true;
    }
    await sleep(POLL_MS);
    if (isOver) return null;
  }
}
