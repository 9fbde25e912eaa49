/** Hands sessions over to an instance that outlives this process. */
import { spawn } from 'node:child_process';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { readConnection } from '@coxswain/adapter-nats';
import { CliError, EXIT } from '../line/cli-error.ts';
import type { OpenBus } from './open-bus.ts';
import { pastedCommand } from './pasted-command.ts';

const UP_WITHIN_MS = 60_000;
const LOOKED_EVERY_MS = 100;

/** Stops what runs in this process and starts `cox up` on the same state folder, which goes on with every session. */
export async function leaveRunning(bus: OpenBus, say: (text: string) => void): Promise<void> {
  // Its log is up.log, which it bounds itself: this has only what it says before it ends with an error.
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
        // A manifest that the folder brought is found again, and refused where it has changed since it was trusted.
        ...(bus.manifest?.digest === undefined ? ['--manifest', bus.manifest?.path ?? 'none'] : []),
        // Another command may be quicker, and carries the sessions until it ends.
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
    // After the start of what takes the folder over: whoever runs this process may end it at any moment.
    await bus.close();
    const untilMs = Date.now() + UP_WITHIN_MS;
    while (!(await readConnection(bus.stateDir))) {
      if (ended || Date.now() > untilMs) {
        throw new CliError(EXIT.error, 'not_left_running', `cox up did not start in the background; see ${errorFile}`);
      }
      await sleep(LOOKED_EVERY_MS);
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
