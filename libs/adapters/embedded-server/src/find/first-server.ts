/** Finds the server at the first of several paths. */
import { stat } from 'node:fs/promises';
import { requireServerVersion } from '../server-version.ts';
import type { ServerBinary } from './server-cache.ts';

/** How a search without a result is reported. */
export interface FirstServerSearch {
  readonly source: string;
  /** The outcome if no path is a file. */
  readonly none: string;
  readonly note: (source: string, outcome: string) => void;
  readonly signal: AbortSignal | undefined;
}

/**
 * Finds the server at the first path that is a file. Servers at later paths are not tried, as in a shell.
 * @returns undefined if no path is a file, or the first file does not run here or is too old. `note` receives the
 *   reason.
 */
export async function firstServer(
  paths: readonly string[],
  { source, none, note, signal }: FirstServerSearch,
): Promise<ServerBinary | undefined> {
  for (const path of paths) {
    if (!(await isFile(path))) continue;
    try {
      return { path, version: await requireServerVersion(path, signal) };
    } catch (error) {
      signal?.throwIfAborted();
      note(source, error instanceof Error ? error.message : String(error));
      return undefined;
    }
  }
  note(source, none);
  return undefined;
}

/** Whether a path is a regular file, or a link to one. An unreadable folder counts as empty. */
async function isFile(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isFile(),
    () => false,
  );
}
