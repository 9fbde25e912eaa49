/** Processes of this machine, told from later ones with the same id. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';

/** A process that cannot be mistaken for a later one with the same id. */
export interface ProcessMark {
  readonly pid: number;
  /** When it was started, as a text only to be compared; `null` where this system does not say. */
  readonly birth: string | null;
}

/** The mark of a process, or `undefined` when no such process lives. A zombie does not live. */
export async function markProcess(pid: number): Promise<ProcessMark | undefined> {
  if (!answersSignals(pid)) return undefined;
  if (process.platform === 'linux') return linuxMark(pid);
  if (process.platform === 'win32') return { pid, birth: null };
  return psMark(pid);
}

/** Whether the marked process still lives. Where births are not known, its id alone decides. */
export async function isAlive(mark: ProcessMark): Promise<boolean> {
  const now = await markProcess(mark.pid);
  if (!now) return false;
  return mark.birth === null || now.birth === null || mark.birth === now.birth;
}

function answersSignals(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: it lives and belongs to somebody else.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/**
 * Start time in clock ticks since boot, field 22 of https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html, told
 * apart between boots: a restarted container reuses its few process ids all the time.
 */
async function linuxMark(pid: number): Promise<ProcessMark | undefined> {
  let stat: string;
  let boot: string;
  try {
    stat = await readFile(`/proc/${pid}/stat`, 'utf8');
    boot = (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim();
  } catch {
    // Hidden by the mount options of /proc, or gone this instant: the signal decides.
    return answersSignals(pid) ? { pid, birth: null } : undefined;
  }
  // The second field is the program's name in parentheses and may itself contain spaces and parentheses.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const state = fields[0];
  const ticks = fields[19];
  if (state === 'Z' || state === 'X') return undefined;
  return { pid, birth: ticks === undefined ? null : `${boot}:${ticks}` };
}

async function psMark(pid: number): Promise<ProcessMark | undefined> {
  try {
    const { stdout } = await promisify(execFile)('ps', ['-o', 'stat=', '-o', 'lstart=', '-p', String(pid)], {
      timeout: 5_000,
      env: { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' },
    });
    const [state = '', ...birth] = stdout.trim().split(/\s+/);
    return state.startsWith('Z') ? undefined : { pid, birth: birth.join(' ') };
  } catch {
    // ps answers 1 for a process that is gone; where there is no ps, the signal decides.
    return answersSignals(pid) ? { pid, birth: null } : undefined;
  }
}
