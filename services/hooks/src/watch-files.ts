/** Watches the files of a served module. */
import { unwatchFile, watchFile } from 'node:fs';
import type { Log } from '@coxswain/ports';

const LOOKED_EVERY_MS = 250;
/** A version that failed to load may lack a file that is not watched yet. */
const BROKEN_TRIED_EVERY_MS = 2_000;

/**
 * Calls `reload` after a file has changed, one call at a time. `reload` resolves with the files to watch from then on.
 */
export function watchFiles(
  first: readonly string[],
  log: Log,
  reload: () => Promise<readonly string[]>,
): { end(): Promise<void> } {
  let files = first;
  let running: Promise<void> | null = null;
  let again = false;
  let ended = false;
  let retry: NodeJS.Timeout | undefined;
  let lastProblem = '';

  const look = () => {
    for (const file of files) watchFile(file, { interval: LOOKED_EVERY_MS, persistent: false }, changed);
  };
  const lookAway = () => {
    for (const file of files) unwatchFile(file, changed);
  };
  function changed(): void {
    if (ended) return;
    again = true;
    running ??= work();
  }
  async function work(): Promise<void> {
    while (again && !ended) {
      again = false;
      clearTimeout(retry);
      try {
        const next = await reload();
        lastProblem = '';
        lookAway();
        files = next;
        if (!ended) look();
      } catch (error) {
        const problem = (error as Error).message;
        if (problem !== lastProblem)
          log.error({ error }, 'the new version was rejected; the earlier version stays in use');
        lastProblem = problem;
        retry = setTimeout(changed, BROKEN_TRIED_EVERY_MS);
        retry.unref();
      }
    }
    // Set here instead of in `finally` of the promise: a change in between would start no reload.
    running = null;
  }
  look();
  return {
    async end() {
      ended = true;
      clearTimeout(retry);
      lookAway();
      await running;
    },
  };
}
