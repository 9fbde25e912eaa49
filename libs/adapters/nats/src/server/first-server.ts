/** The server at the first of several paths. */
import { stat } from 'node:fs/promises';
import type { ServerBinary } from './server-cache.ts';
import { requireServerVersion } from './server-version.ts';

/** How a search is described where it finds nothing. */
export interface FirstServerSearch {
  readonly source: string;
  /** What is noted if no path has a file. */
  readonly none: string;
  readonly note: (source: string, outcome: string) => void;
  readonly signal: AbortSignal | undefined;
}

/**
 * The server at the first path that is a file. Only this one counts, as for a shell: a server at a later path is not tried.
 * @returns undefined if no path is a file, or the first one does not run here or is too old; `note` says why.
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

/** Whether a path is a regular file, or a link to one. A folder that may not be read counts as empty. */
async function isFile(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isFile(),
    () => false,
  );
}
