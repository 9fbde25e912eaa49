import { randomBytes } from 'node:crypto';
import { readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isAlive, makeFolder, markProcess, type ProcessMark, StateDirUnusableError } from '@coxswain/ports/discovery';
import { type StateDirHolder, StateDirInUseError } from '../server-errors.ts';

/**
 * One server per state directory.
 *
 * C1. A process that wants the directory first writes a claim under a unique name, then reads all other claims. Of two
 *     concurrent processes, at least the later one sees the other's claim. A process that sees the claim of a live
 *     process backs off. So two processes never hold the directory.
 * C2. The claim of another process is removed by its own name, and only if that process is dead. So a takeover cannot
 *     remove a claim that was made in the meantime, as it could with a shared lock file.
 * C3. A claim names its server. If the process is dead but its server is alive (its watchdog was also killed), the
 *     server is ended before the directory is claimed.
 */

/** A held state directory. */
export interface StateDirClaim {
  /** Records the started server in the claim, so that it can be found if this process is killed (C3). */
  recordServer(server: ProcessMark): Promise<void>;
  /** Releases the directory. */
  release(): Promise<void>;
}

interface ClaimFile {
  readonly owner: ProcessMark;
  /** Absent if the process has not described itself. */
  readonly holder?: StateDirHolder | undefined;
  readonly server: ProcessMark | null;
}

const attempts = 20;
const orphanLeavesMs = 3_000;
const orphanDiesMs = 10_000;

/**
 * Claims a state directory for this process.
 *
 * @throws StateDirInUseError naming the process that holds it; StateDirUnusableError if its folder of claims cannot be
 *   created, or naming an invalid claim; the file system's errors.
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
      // Two processes that start at the same time both back off. A random pause decides which one is first.
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
  /** Absent if the process has not described itself. */
  readonly holder?: StateDirHolder | undefined;
}

/**
 * Finds the live process that holds a state directory, or is about to claim it.
 * @returns undefined if there is none, or the directory does not exist.
 * @throws the file system's error if the claims cannot be read; StateDirUnusableError naming an invalid claim.
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
  /** Whether it has started a server. If not, it may be about to back off. */
  readonly hasServer: boolean;
}

/** Finds another live process that holds or wants the directory. Removes claims of dead processes. */
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

/** Ends a server whose parent process is dead. @returns whether the server has ended. */
async function endOrphan(server: ProcessMark): Promise<boolean> {
  // Its watchdog is probably ending it already.
  if (await isGoneWithin(server, orphanLeavesMs)) return true;
  // Without a birth mark, the process id may belong to another program now: do not kill it.
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
  // Write atomically by a rename, so that no process reads a partial claim.
  const draft = join(dir, `${name}.draft`);
  // Flushed, because the loss of power could otherwise leave an empty claim.
  await writeFile(draft, JSON.stringify(claim), { mode: 0o600, flush: true });
  await rename(draft, join(dir, name));
}

async function read(dir: string, name: string): Promise<ClaimFile | undefined> {
  const path = join(dir, name);
  try {
    const claim = JSON.parse(await readFile(path, 'utf8')) as ClaimFile;
    if (isMark(claim.owner) && (claim.server === null || isMark(claim.server))) return claim;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // The claim was released between listing and reading.
    if (code === 'ENOENT') return undefined;
    if (code !== undefined) throw error;
    // It is not JSON, such as an empty file after a loss of power.
  }
  const reason = `${path} is not a claim; if no process of Coxswain uses this folder, delete that file`;
  throw new StateDirUnusableError(dirname(dir), reason);
}

function isMark(mark: ProcessMark | undefined): boolean {
  return Number.isSafeInteger(mark?.pid);
}
