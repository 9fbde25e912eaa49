/** Folders that live as long as a test file. */
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const made: string[] = [];

/** A new empty folder, by its real path. */
export async function scratchFolder(purpose: string): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), `cox-e2e-${purpose}-`)));
  made.push(folder);
  return folder;
}

/** Removes every folder that was made here; `COX_E2E_KEEP` keeps them for a look. */
export async function removeScratch(): Promise<void> {
  if (process.env.COX_E2E_KEEP) {
    console.info(`kept: ${made.join(' ')}`);
    return;
  }
  // A process that has just been killed may still be writing its last.
  await Promise.all(made.splice(0).map((folder) => rm(folder, { recursive: true, force: true, maxRetries: 5 })));
}
