/** Watches the files of a served module. */
import { unwatchFile, watchFile } from 'node:fs';
import { stat } from 'node:fs/promises';
import type { Log } from '@coxswain/ports';

const LOOKED_EVERY_MS = 250;
/** A version that failed to load may lack a file that is not watched yet. */
const BROKEN_TRIED_EVERY_MS = 2_000;

/**
 * Calls `reload` after a file has changed, one call at a time. `reload` resolves with the files to watch from then on.
 * @param sinceMs when the loading of the first files began, as `Date.now()`: later changes count.
 */
export function watchFiles(
  first: readonly string[],
  sinceMs: number,
  log: Log,
  reload: () => Promise<readonly string[]>,
): { end(): Promise<void> } {
  const watched = new Set<string>();
  let running: Promise<void> | null = null;
  let again = false;
  let ended = false;
  let retry: NodeJS.Timeout | undefined;
  let lastProblem = '';

  /** Watches these files, and no others. A watched file stays watched: its change since the last look would be lost. */
  const look = (files: readonly string[], sinceMs: number) => {
    for (const file of watched) if (!files.includes(file) && watched.delete(file)) unwatchFile(file, changed);
    for (const file of files) {
      if (watched.has(file)) continue;
      watched.add(file);
      watchFile(file, { interval: LOOKED_EVERY_MS, persistent: false }, changed);
      // It may have changed between its loading and now. The watch reports that a file is missing.
      void stat(file).then(
        ({ mtimeMs }) => mtimeMs > sinceMs && changed(),
        () => undefined,
      );
    }
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
        const sinceMs = Date.now();
        const next = await reload();
        lastProblem = '';
        if (!ended) look(next, sinceMs);
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
  look(first, sinceMs);
  return {
    async end() {
      ended = true;
      clearTimeout(retry);
      look([], 0);
      await running;
    },
  };
}
