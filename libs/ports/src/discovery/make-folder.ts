/**
 * Creates folders level by level: `mkdir` with `recursive` never ends on file systems that answer a mkdir with ENOENT,
 * such as /proc.
 */
import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { StateDirUnusableError } from './discovery-errors.ts';

/** More levels than any valid path has. */
const LEVELS_MAX = 512;

/**
 * Creates a folder and its missing parents.
 * @param mode the mode of created folders. Default: for this user only.
 * @throws StateDirUnusableError if a folder cannot be created, or the path is something else.
 */
export async function makeFolder(path: string, mode = 0o700): Promise<void> {
  const missing: string[] = [];
  let above = path;
  while (!(await isFolder(above, path))) {
    missing.push(above);
    const parent = dirname(above);
    if (parent === above || missing.length > LEVELS_MAX)
      throw new StateDirUnusableError(path, 'no folder above it exists');
    above = parent;
  }
  for (const folder of missing.reverse()) {
    try {
      await mkdir(folder, { mode });
    } catch (error) {
      // Another process may have created it at the same moment.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST')
        throw new StateDirUnusableError(path, systemTrouble(error), { cause: error });
    }
  }
  // A broken link also answers with EEXIST.
  if (!(await isFolder(path, path))) throw new StateDirUnusableError(path, 'it is a broken link');
}

async function isFolder(path: string, asked: string): Promise<boolean> {
  try {
    if ((await stat(path)).isDirectory()) return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw new StateDirUnusableError(asked, systemTrouble(error), { cause: error });
  }
  throw new StateDirUnusableError(asked, path === asked ? 'it is not a folder' : `${path} is not a folder`);
}

/**
 * Describes why a folder cannot be created or written, a file cannot be read, or a program cannot be started, with the
 * system's error code.
 * Also accepts the errors of {@link makeFolder}.
 */
export function systemTrouble(error: unknown): string {
  if (error instanceof StateDirUnusableError) return error.reason;
  const { code } = error as NodeJS.ErrnoException;
  const reasons: Record<string, string> = {
    EACCES: 'permission denied',
    EPERM: 'permission denied',
    EROFS: 'read-only file system',
    ENOSPC: 'no space left on device',
    EDQUOT: 'disk quota exceeded',
    EFBIG: 'file too large',
    ENOTDIR: 'a part of the path is not a folder',
    EISDIR: 'it is a folder',
    ENOENT: 'no such file or directory',
    ENAMETOOLONG: 'the path is too long',
  };
  const reason = code && reasons[code];
  return reason ? `${reason} (${code})` : (error as Error).message;
}
