/** Transfers sessions to an instance that outlives this process. */
import { spawn } from 'node:child_process';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { readConnection } from '@coxswain/ports/discovery';
import { CliError, EXIT } from '../line/mod.ts';
import type { OpenBus } from './open-bus.ts';
import { pastedCommand } from './pasted-command.ts';

const START_TIMEOUT_MS = 60_000;
const POLL_MS = 100;

/**
 * Starts `cox up` in the background on the same state directory, and stops the instance in this process. `cox up`
 * continues all sessions.
 * @throws CliError `not_left_running` if it does not start within 60 s.
 */
export async function leaveRunning(bus: OpenBus, say: (text: string) => void): Promise<void> {
  // `cox up` writes its log to up.log, with a size limit. This file gets only the output before an early error.
  const errorFile = join(bus.stateDir, 'up.err');
  const log = await open(errorFile, 'w', 0o600);
  try {
    const child = spawn(
      process.execPath,
      [
        ...process.execArgv,
        process.argv[1] as string,
        'up',
        '--quiet',
        '--state-dir',
        bus.stateDir,
        // `cox up` finds a manifest of the folder itself, and rejects it if it has changed since it was trusted.
        ...(bus.manifest?.digest === undefined ? ['--manifest', bus.manifest?.path ?? 'none'] : []),
        // Another command may use the folder first. It then hosts the sessions until it ends.
        '--wait-for-folder',
        '1d',
      ],
      { detached: true, stdio: ['ignore', log.fd, log.fd] },
    );
    let ended = false;
    child.once('exit', () => {
      ended = true;
    });
    child.once('error', () => {
      ended = true;
    });
    // Closes the bus only after `cox up` was spawned, because this process may be killed at any time.
    await bus.close();
    const untilMs = Date.now() + START_TIMEOUT_MS;
    while (!(await readConnection(bus.stateDir))) {
      if (ended || Date.now() > untilMs) {
        throw new CliError(EXIT.error, 'not_left_running', `cox up did not start in the background; see ${errorFile}`);
      }
      await sleep(POLL_MS);
    }
    child.unref();
    const pasted = (command: string) => pastedCommand(command, { address: null, stateDir: bus.stateDir }, process.env);
    say(
      `cox up continues in the background as process ${child.pid}; its log: ${pasted('logs')}; to stop it: ${pasted('down')}`,
    );
  } finally {
    await log.close();
  }
}
