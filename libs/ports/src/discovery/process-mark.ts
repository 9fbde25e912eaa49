/** Identifies processes of this machine, and distinguishes them from later processes with the same id. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';

/** A process, distinguished from later processes with the same id. */
export interface ProcessMark {
  readonly pid: number;
  /** The start time as an opaque text, for comparison only; `null` if the system does not report it. */
  readonly birth: string | null;
}

/** The mark of a process, or `undefined` if no such process is alive. A zombie is not alive. */
export async function markProcess(pid: number): Promise<ProcessMark | undefined> {
  if (!answersSignals(pid)) return undefined;
  if (process.platform === 'linux') return linuxMark(pid);
  if (process.platform === 'win32') return { pid, birth: null };
  return psMark(pid);
}

/** Whether the marked process is still alive. If a start time is unknown, the id alone decides. */
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
    // EPERM: the process is alive and belongs to another user.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/**
 * Reads the start time in clock ticks since boot: field 22 of
 * https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html. The boot id is part of the mark, because a restarted
 * container reuses a few process ids.
 */
async function linuxMark(pid: number): Promise<ProcessMark | undefined> {
  let stat: string;
  let boot: string;
  try {
    stat = await readFile(`/proc/${pid}/stat`, 'utf8');
    boot = (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim();
  } catch {
    // The mount options of /proc hide the process, or it has just ended. The signal decides.
    return answersSignals(pid) ? { pid, birth: null } : undefined;
  }
  // The second field is the program's name in parentheses. The name may contain spaces and parentheses.
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
    // `ps` exits with 1 for an ended process. Without `ps`, the signal decides.
    return answersSignals(pid) ? { pid, birth: null } : undefined;
  }
}
