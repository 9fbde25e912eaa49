import { randomBytes } from 'node:crypto';
import { readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isAlive, markProcess, type ProcessMark } from '@coxswain/ports/discovery';
import { makeFolder } from './make-folder.ts';
import { type StateDirHolder, StateDirInUseError } from './server-errors.ts';

/**
 * One server per state directory.
 *
 * C1. Who wants the directory first writes a claim under a name of its own, and then reads all others: of two at once,
 *     at least the later one sees the other. Seeing a living one means standing back. So never two.
 * C2. A claim is removed only by its own name, and only when its process is dead. So a takeover cannot remove a claim
 *     that was made in the meantime, as it could with one lock file that everybody shares.
 * C3. A claim names its server. When the process is dead but its server lives (its watchdog was killed too), the server
 *     is ended before the directory is taken.
 */

/** A held state directory. */
export interface StateDirClaim {
  /** Writes down the server that was started, so that it can be found if this process dies badly (C3). */
  recordServer(server: ProcessMark): Promise<void>;
  /** Gives the directory back. */
  release(): Promise<void>;
}

interface ClaimFile {
  readonly owner: ProcessMark;
  /** Absent in claims of processes that do not say it. */
  readonly holder?: StateDirHolder | undefined;
  readonly server: ProcessMark | null;
}

const attempts = 20;
const orphanLeavesMs = 3_000;
const orphanDiesMs = 10_000;

/**
 * Claims a state directory for this process.
 *
 * @throws StateDirInUseError naming the process that holds it.
 */
export async function claimStateDir(stateDir: string, holder?: StateDirHolder): Promise<StateDirClaim> {
  const dir = join(stateDir, 'lock');
  await makeFolder(dir);
  const owner = await markProcess(process.pid);
  if (!owner) throw new Error('this process does not find itself');
  for (let attempt = 1; ; attempt += 1) {
    const name = `${process.pid}-${randomBytes(6).toString('hex')}.json`;
    await write(dir, name, { owner, holder, server: null });
    let held = false;
    try {
      const other = await livingHolder(dir, name);
      if (!other) {
        held = true;
        return {
          recordServer: (server) => write(dir, name, { owner, holder, server }),
          release: () => rm(join(dir, name), { force: true }),
        };
      }
      // Two that start at once see each other and both stand back: a random pause decides who comes first.
      if (other.hasServer || attempt === attempts) throw new StateDirInUseError(stateDir, other.pid, other.holder);
    } finally {
      if (!held) await rm(join(dir, name), { force: true });
    }
    await sleep(5 + Math.random() * 45);
  }
}

/** The process that holds a state directory. */
export interface StateDirOwner {
  readonly process: ProcessMark;
  /** Absent where the process does not say what it is. */
  readonly holder?: StateDirHolder | undefined;
}

/**
 * Finds the living process that holds a state directory, or is about to.
 * @returns undefined where none does, and where the directory does not exist.
 * @throws the file system's error when the claims may not be read.
 */
export async function stateDirOwner(stateDir: string): Promise<StateDirOwner | undefined> {
  const dir = join(stateDir, 'lock');
  const names = await readdir(dir).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return [];
    throw error;
  });
  for (const name of names.filter((one) => one.endsWith('.json'))) {
    const claim = await read(dir, name);
    if (claim && (await isAlive(claim.owner))) return { process: claim.owner, holder: claim.holder };
  }
  return undefined;
}

interface Holder {
  readonly pid: number;
  readonly holder?: StateDirHolder | undefined;
  /** Otherwise it may be about to stand back itself. */
  readonly hasServer: boolean;
}

/** Somebody else who holds, or wants, the directory. Claims of the dead are removed on the way. */
async function livingHolder(dir: string, own: string): Promise<Holder | undefined> {
  for (const name of await readdir(dir)) {
    if (name === own || !name.endsWith('.json')) continue;
    const claim = await read(dir, name);
    if (!claim) continue;
    if (await isAlive(claim.owner))
      return { pid: claim.owner.pid, holder: claim.holder, hasServer: claim.server !== null };
    if (claim.server && !(await endOrphan(claim.server))) return { pid: claim.server.pid, hasServer: true };
    await rm(join(dir, name), { force: true });
  }
  return undefined;
}

/** Ends a server whose process is dead. Returns whether it is gone. */
async function endOrphan(server: ProcessMark): Promise<boolean> {
  // Its watchdog is most likely at work this instant.
  if (await isGoneWithin(server, orphanLeavesMs)) return true;
  // Without a birth mark the id may by now belong to anybody: not ours to end.
  if (server.birth === null) return false;
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    try {
      process.kill(server.pid, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
    if (await isGoneWithin(server, orphanDiesMs)) return true;
  }
  return false;
}

async function isGoneWithin(server: ProcessMark, boundMs: number): Promise<boolean> {
  const deadline = performance.now() + boundMs;
  while (await isAlive(server)) {
    if (performance.now() > deadline) return false;
    await sleep(50);
  }
  return true;
}

async function write(dir: string, name: string, claim: ClaimFile): Promise<void> {
  // Renamed into place, so that nobody reads half a claim.
  const draft = join(dir, `${name}.draft`);
  await writeFile(draft, JSON.stringify(claim), { mode: 0o600 });
  await rename(draft, join(dir, name));
}

async function read(dir: string, name: string): Promise<ClaimFile | undefined> {
  const path = join(dir, name);
  try {
    return JSON.parse(await readFile(path, 'utf8')) as ClaimFile;
  } catch (error) {
    // Released between the listing and the reading.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new Error(`${path} is not a claim: remove it when no server runs on this directory`, { cause: error });
  }
}
