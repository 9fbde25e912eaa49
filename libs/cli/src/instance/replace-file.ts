/** Writes a file in one step: a reader finds the old text or the new one, and never half of it. */
import { randomUUID } from 'node:crypto';
import { rename, rm, writeFile } from 'node:fs/promises';

/**
 * Writes a file, readable by this user only, in place of the one that has its name.
 * @throws the error of the system. Then the old file stays, and no draft is left.
 */
export async function replaceFile(path: string, text: string): Promise<void> {
  const draft = `${path}.${randomUUID()}`;
  try {
    await writeFile(draft, text, { mode: 0o600, flag: 'wx', flush: true });
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}
