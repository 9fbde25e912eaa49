/** Starts what needs a state folder for itself, once no command runs on that any more. */
import { setTimeout as sleep } from 'node:timers/promises';
import { StateDirInUseError } from '@coxswain/adapter-nats';

/** How it is waited. */
export interface Waiting {
  /** What else than a command has the folder is not waited for at all. */
  readonly waitMs: number;
  /** Resolves when nobody wants it any more. */
  readonly told: Promise<unknown>;
  /** Told once, where it waits. */
  say(text: string): void;
}

const LOOKED_AGAIN_MS = 500;

/**
 * Starts it. A command such as `cox run` that has found no instance keeps a server of its own on the folder as long as it works,
 * and others join that; what is started here is to stay, so it waits for the end of that.
 * @returns null where it was told to stop while it waited.
 * @throws StateDirInUseError where the folder is not free in time, or has somebody who stays; whatever starting throws.
 */
export async function whenFree<T>(start: () => Promise<T>, { waitMs, told, say }: Waiting): Promise<T | null> {
  const untilMs = performance.now() + waitMs;
  let isOver = false;
  let isTold = false;
  void told.then(() => {
    isOver = true;
  });
  for (;;) {
    try {
      return await start();
    } catch (error) {
      if (!(error instanceof StateDirInUseError) || error.holder?.passing !== true) throw error;
      if (performance.now() >= untilMs) throw error;
      const { stateDir, pid, holder } = error;
      if (!isTold) say(`${holder.title} (process ${pid}) uses ${stateDir}; cox up starts after it has ended\n`);
      isTold = true;
    }
    await sleep(LOOKED_AGAIN_MS);
    if (isOver) return null;
  }
}
