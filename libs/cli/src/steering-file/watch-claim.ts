/**
 * Allows one watcher per steering file. A watcher writes a claim under a unique name, then reads the other claims. Of
 * two concurrent watchers, at least the later one sees the other and withdraws until its next attempt. Claims of dead
 * processes are removed.
 */
import { randomBytes } from 'node:crypto';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { isAlive, markProcess, type ProcessMark } from '@coxswain/ports/discovery';

/** A claim that was obtained, or the process that holds another one. */
export type WatchClaim = { readonly release: () => Promise<void> } | { readonly heldBy: number };

/**
 * Claims a steering file for this process.
 * @param path the steering file, whose folder must exist.
 * @throws the errors of the file system.
 */
export async function claimWatch(path: string): Promise<WatchClaim> {
  const folder = dirname(path);
  const prefix = `${basename(path)}.claim-`;
  const own = `${prefix}${process.pid}-${randomBytes(6).toString('hex')}`;
  const mark = await markProcess(process.pid);
  if (!mark) throw new Error('this process is not in the process list');
  const release = () => rm(join(folder, own), { force: true });
  let isClaimed = false;
  try {
    await writeFile(join(folder, own), JSON.stringify(mark), { mode: 0o600 });
    for (const name of await readdir(folder)) {
      if (!name.startsWith(prefix) || name === own) continue;
      const holder = await readMark(join(folder, name));
      if (holder && (await isAlive(holder))) return { heldBy: holder.pid };
      if (holder) await rm(join(folder, name), { force: true });
    }
    isClaimed = true;
    return { release };
  } finally {
    // A claim that stays would be one of a live process, and would exclude also this one.
    if (!isClaimed) await release();
  }
}

async function readMark(path: string): Promise<ProcessMark | null> {
  try {
    const mark = JSON.parse(await readFile(path, 'utf8')) as ProcessMark;
    return typeof mark.pid === 'number' ? mark : null;
  } catch {
    // The claim was released after the listing, or is still being written by a process that will see this one.
    return null;
  }
}
