/** Folders, made level by level: `mkdir` with `recursive` never ends on file systems that answer ENOENT to a mkdir, as /proc does. */
import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { StateDirUnusableError } from '@coxswain/ports/discovery';

/** More levels than any path that a system takes. */
const LEVELS_MAX = 512;

/**
 * Makes a folder and those above it.
 * @param mode of those that were not there; for this user only by default.
 * @throws StateDirUnusableError where that cannot be done, or something else stands there.
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
      // Another process may have made it at the same moment.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST')
        throw new StateDirUnusableError(path, systemTrouble(error), { cause: error });
    }
  }
  // EEXIST is also what a link to nowhere answers.
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
 * Why a folder cannot be created or written, or a program cannot be started, with the code of the system. Also accepts what
 * {@link makeFolder} throws.
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
    ENOENT: 'no such file or directory',
    ENAMETOOLONG: 'the path is too long',
  };
  const reason = code && reasons[code];
  return reason ? `${reason} (${code})` : (error as Error).message;
}
