/** Whether anything still runs in a process group, and signals to it. */
import { readdir, readFile } from 'node:fs/promises';
import { systemCode } from './tool-problem.ts';

/** Sends a signal to a group; 0 only asks. Returns whether the group had a process to take it, zombies included. */
export function signalGroup(group: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(-group, signal);
    return true;
  } catch (error) {
    // EPERM: a group of zombies on macOS, or processes of someone else, which cannot be ended from here either way.
    if (systemCode(error) === 'ESRCH' || systemCode(error) === 'EPERM') return false;
    throw error;
  }
}

/**
 * Whether a group has a process that has not ended. Zombies have: whose parent is gone they wait for an init that in
 * many containers never comes. Where there is no /proc they cannot be told apart and count as alive.
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
    // It ended between the listing and now.
    return false;
  }
  // `pid (name) state ppid pgrp …`, and the name may hold anything, parentheses too.
  const [state, , processGroup] = status.slice(status.lastIndexOf(')') + 2).split(' ');
  return Number(processGroup) === group && state !== 'Z' && state !== 'X';
}
