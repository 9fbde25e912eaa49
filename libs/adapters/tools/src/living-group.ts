/** Checks whether a process group still runs, and sends signals to it. */
import { readdir, readFile } from 'node:fs/promises';
import { systemCode } from './tool-problem.ts';

/**
 * Sends a signal to a group; 0 only checks it. Returns whether the group had a process that could receive it, zombies
 * included.
 */
export function signalGroup(group: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(-group, signal);
    return true;
  } catch (error) {
    // EPERM: the group has only zombies on macOS, or processes of another user, which this process cannot end.
    if (systemCode(error) === 'ESRCH' || systemCode(error) === 'EPERM') return false;
    throw error;
  }
}

/**
 * Whether a group has a process that has not ended. Zombies count as ended: without a parent they wait for an init
 * process, which many containers lack. Without /proc they cannot be distinguished, and count as alive.
 */
export async function groupIsAlive(group: number): Promise<boolean> {
  if (!signalGroup(group, 0)) return false;
  if (process.platform !== 'linux') return true;
  let processes: string[];
  try {
    processes = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  } catch {
    // No /proc is mounted.
    return true;
  }
  const found = await Promise.all(processes.map((pid) => runsInGroup(pid, group)));
  return found.includes(true);
}

async function runsInGroup(pid: string, group: number): Promise<boolean> {
  let status: string;
  try {
    status = await readFile(`/proc/${pid}/stat`, 'latin1');
  } catch {
    // It ended after the listing.
    return false;
  }
  // `pid (name) state ppid pgrp …`. The name may contain any characters, including parentheses.
  const [state, , processGroup] = status.slice(status.lastIndexOf(')') + 2).split(' ');
  return Number(processGroup) === group && state !== 'Z' && state !== 'X';
}
