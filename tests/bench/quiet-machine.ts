/** Whether other processes use the machine: figures of a busy machine are worth nothing. */
import { cpus } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * A machine is quiet while at most this share of its CPU time is in use. The load average is printed too, but it is no
 * measure before a run: for minutes it contains the run before.
 */
export const QUIET_AT_MOST = 0.1;

const WINDOW_MS = 1_000;
/** Enough for a server to end and for its files to be removed. */
const WINDOWS_AT_MOST = 15;

/**
 * Waits until the machine is quiet, at most 15 seconds. Nothing of the bench may run meanwhile.
 * @returns the share of all cores that was in use in the last second, 0 to 1.
 */
export async function untilQuiet(): Promise<number> {
  let share = 1;
  for (let i = 0; i < WINDOWS_AT_MOST && share > QUIET_AT_MOST; i++) share = await shareInUse();
  return share;
}

async function shareInUse(): Promise<number> {
  const before = cpuTimes();
  await sleep(WINDOW_MS);
  const after = cpuTimes();
  const total = after.total - before.total;
  return total === 0 ? 0 : 1 - (after.idle - before.idle) / total;
}

function cpuTimes(): { idle: number; total: number } {
  let idle = 0;
  let total = 0;
  for (const { times } of cpus()) {
    idle += times.idle;
    total += times.user + times.nice + times.sys + times.idle + times.irq;
  }
  return { idle, total };
}
