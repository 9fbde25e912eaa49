#!/usr/bin/env node
/** The program `cox`. */
import { closeSync, writeSync } from 'node:fs';
import { constants } from 'node:os';
import { isatty } from 'node:tty';
import { dispatch } from './line/dispatch.ts';
import { hangUp } from './service/stop-signal.ts';

let writeError: NodeJS.ErrnoException | null = null;
const terminals = [0, 1, 2].filter((fd) => isatty(fd));

// Nothing would read the further output. What runs in this process is stopped in order, as by Ctrl-C. A command that
// only prints ends at once; sessions are not affected.
for (const stream of [process.stdout, process.stderr])
  stream.on('error', (error) => {
    writeError ??= error;
    if (!hangUp()) endUnwritten(error);
  });
process.on('exit', closeLostTerminals);

process.exitCode = await dispatch(process.argv.slice(2), process.env);
// Flushes the output first. Then the process exits, even if something is still open, such as an abandoned connection. A
// stream reports a failed write one turn of the event loop later.
process.stdout.write('', () =>
  process.stderr.write('', () => setImmediate(() => (writeError === null ? process.exit() : endUnwritten(writeError)))),
);

/**
 * Exits with 141 if the reader has closed the pipe (`cox session export … | head`), like a process that SIGPIPE ends, and
 * with 129 if the terminal has closed, as by SIGHUP. Otherwise prints the reason and exits with 1.
 */
function endUnwritten(error: NodeJS.ErrnoException): never {
  if (error.code === 'EPIPE') process.exit(128 + constants.signals.SIGPIPE);
  if (error.code === 'EIO' && terminals.length > 0) process.exit(128 + constants.signals.SIGHUP);
  const why = error.code === 'ENOSPC' ? 'the disk or the device is full' : error.message;
  try {
    // Writes directly to the descriptor, because the stream may be the one that failed.
    writeSync(
      2,
      `cox: cannot write the output: ${why}\n` +
        '  → Free disk space or redirect the output, then repeat the command; sessions are not affected.\n',
    );
  } catch {
    // No output is left. The exit code reports the failure.
  }
  process.exit(1);
}

/** Node resets terminals when it ends, and aborts with a core dump if one has gone. It skips closed descriptors. */
function closeLostTerminals(): void {
  for (const fd of terminals) if (!isatty(fd)) closeSync(fd);
}
