#!/usr/bin/env node
/** The program `cox`. */
import { writeSync } from 'node:fs';
import { dispatch } from './line/dispatch.ts';

// A write error ends the command at once. Nothing would read its further output, and sessions are not affected.
for (const stream of [process.stdout, process.stderr]) stream.on('error', endUnwritten);

process.exitCode = await dispatch(process.argv.slice(2), process.env);
// Flushes the output first. Then the process exits, even if something is still open, such as an abandoned connection. A
// stream reports a failed write one turn of the event loop later.
process.stdout.write('', () => process.stderr.write('', () => setImmediate(() => process.exit())));

/**
 * Exits with 141 if the reader has closed the pipe (`cox session export … | head`), like a process that SIGPIPE ends.
 * Otherwise prints the reason and exits with 1.
 */
function endUnwritten(error: NodeJS.ErrnoException): never {
  if (error.code === 'EPIPE') process.exit(141);
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
