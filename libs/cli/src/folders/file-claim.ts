/**
 * Allows one process at a time to use a file. A process writes a claim under a unique name, then reads the other claims.
 * Of two concurrent processes, at least the later one sees the other and withdraws until its next attempt. Claims of
 * dead processes are removed.
 */
import { randomBytes } from 'node:crypto';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isAlive, markProcess, type ProcessMark } from '@coxswain/ports/discovery';
import { CliError, EXIT } from '../line/mod.ts';

/** A claim that was obtained, or the process that holds another one. */
export type FileClaim = { readonly release: () => Promise<void> } | { readonly heldBy: number };

/** The longest wait for other processes, in ms. A change of a file takes milliseconds. */
const CLAIM_TIMEOUT_MS = 10_000;
/** The longest pause between two attempts, in ms. Its random part decides which of two processes is first. */
const PAUSE_MAX_MS = 50;

/**
 * Runs a task that reads a file and replaces it. Other processes that change the file in this way wait.
 * @param path the file, which need not exist, in an existing folder.
 * @param withinMs the longest wait for the others, in ms.
 * @throws CliError `file_in_use` after that wait; the errors of the file system and of the task.
 */
export async function whileClaimed<T>(
  path: string,
  task: () => Promise<T>,
  withinMs: number = CLAIM_TIMEOUT_MS,
): Promise<T> {
  const untilMs = performance.now() + withinMs;
  for (;;) {
    const claim = await claimFile(path);
    if ('release' in claim) {
      try {
        return await task();
      } finally {
        await claim.release();
      }
    }
    if (performance.now() > untilMs) {
      const message = `file_in_use: process ${claim.heldBy} still changes ${path}; nothing was changed`;
      throw new CliError(EXIT.error, 'file_in_use', message);
    }
    await sleep(Math.random() * PAUSE_MAX_MS);
  }
}

/**
 * Claims a file for this process.
 * @param path the file, which need not exist, in an existing folder.
 * @throws the errors of the file system. Then no claim is left.
 */
export async function claimFile(path: string): Promise<FileClaim> {
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
