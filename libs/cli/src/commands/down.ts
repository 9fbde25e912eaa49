/** `cox down`. */
import { setTimeout as sleep } from 'node:timers/promises';
import { stateDirOwner } from '@coxswain/adapter-embedded-server';
import { isAlive, markProcess, type ProcessMark } from '@coxswain/ports/discovery';
import { stateDirOf } from '../folders/mod.ts';
import { CliError, type CommandRun, EXIT } from '../line/mod.ts';
import { askHealth } from '../service/mod.ts';
import { standardStreams } from '../terminal/mod.ts';

/** The time to stop, in ms. A session host transfers its sessions first, and the server writes its state. */
const STOP_TIMEOUT_MS = 60_000;
const POLL_MS = 50;

/**
 * Stops every `cox up` of a state directory, and waits until each has ended. Exits 1 for `not_running` and
 * `up_not_stopped`.
 */
export const run: CommandRun = async ({ flags, env }) => {
  const stateDir = stateDirOf(flags, env);
  const running = await runningUps(stateDir);
  if (running.length === 0) throw await nothingRuns(stateDir);
  for (const { pid } of running) endProcess(pid);
  const untilMs = Date.now() + STOP_TIMEOUT_MS;
  for (const one of running) {
    while (await isAlive(one)) {
      if (Date.now() > untilMs) {
        const message = `up_not_stopped: cox up (process ${one.pid}) is still running after ${STOP_TIMEOUT_MS / 1_000} s`;
        throw new CliError(EXIT.error, 'up_not_stopped', message);
      }
      await sleep(POLL_MS);
    }
    standardStreams.out(
      flags.on('json')
        ? `${JSON.stringify({ type: 'stopped', pid: one.pid, state_dir: stateDir })}\n`
        : `cox up (process ${one.pid}) has stopped\n`,
    );
  }
  return EXIT.ok;
};

/** A `cox up` with its own server owns the state directory. A `cox up` on another bus answers health requests there. */
async function runningUps(stateDir: string): Promise<readonly ProcessMark[]> {
  const owner = await stateDirOwner(stateDir);
  const found = owner?.holder?.title === 'cox up' ? [owner.process] : [];
  for (const { service, pid } of await askHealth(stateDir)) {
    if (service !== 'up' || pid === 0 || found.some((one) => one.pid === pid)) continue;
    const process = await markProcess(pid);
    if (process) found.push(process);
  }
  return found;
}

async function nothingRuns(stateDir: string): Promise<CliError> {
  const owner = await stateDirOwner(stateDir);
  const other = owner ? `; ${owner.holder?.title ?? 'another process'} (process ${owner.process.pid}) uses it` : '';
  return new CliError(EXIT.error, 'not_running', `not_running: no cox up runs on ${stateDir}${other}`);
}

function endProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGTERM');
  } catch (error) {
    // The process has already ended.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
