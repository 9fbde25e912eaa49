/**
 * One watcher per steering file. Who wants it writes a claim under a name of its own and then reads the others: of two at
 * once, at least the later one sees the other and stands back until it looks again. Claims of the dead are removed.
 */
import { randomBytes } from 'node:crypto';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { isAlive, markProcess, type ProcessMark } from '@coxswain/adapter-nats';

/** A held file, or the process that holds it. */
export type WatchClaim = { readonly release: () => Promise<void> } | { readonly heldBy: number };

/** Claims a steering file for this process. */
export async function claimWatch(path: string): Promise<WatchClaim> {
  const folder = dirname(path);
  const prefix = `${basename(path)}.claim-`;
  const own = `${prefix}${process.pid}-${randomBytes(6).toString('hex')}`;
  const mark = await markProcess(process.pid);
  if (!mark) throw new Error('this process is not in the process list');
  await writeFile(join(folder, own), JSON.stringify(mark), { mode: 0o600 });
  for (const name of await readdir(folder)) {
    if (!name.startsWith(prefix) || name === own) continue;
    const holder = await readMark(join(folder, name));
    if (holder && (await isAlive(holder))) {
      await rm(join(folder, own), { force: true });
      return { heldBy: holder.pid };
    }
    if (holder) await rm(join(folder, name), { force: true });
  }
  return { release: () => rm(join(folder, own), { force: true }) };
}

async function readMark(path: string): Promise<ProcessMark | null> {
  try {
    const mark = JSON.parse(await readFile(path, 'utf8')) as ProcessMark;
    return typeof mark.pid === 'number' ? mark : null;
  } catch {
    // Given back between the listing and the reading, or just being written by one that will see this claim.
    return null;
  }
}
