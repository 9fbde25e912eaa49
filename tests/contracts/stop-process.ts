/** A process that stands still, every thread of it. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';

const LOOK_EVERY_MS = 5;

/**
 * Stops a process, and resolves when none of its threads runs any more: the signal is on its way first, and a thread may still
 * answer. Where there is no `/proc` (not Linux) there is nothing to look at. Its end is `SIGCONT`.
 */
export async function stopProcess(pid: number): Promise<void> {
  process.kill(pid, 'SIGSTOP');
  const tasks = `/proc/${pid}/task`;
  if (!existsSync(tasks)) return;
  while (!readdirSync(tasks).every((thread) => isStopped(`${tasks}/${thread}/stat`))) await setTimeout(LOOK_EVERY_MS);
}

/** The state stands behind the name, which is in brackets and may hold any character (proc(5)). */
function isStopped(path: string): boolean {
  const text = readFileSync(path, 'utf8');
  return text.charAt(text.lastIndexOf(')') + 2) === 'T';
}
