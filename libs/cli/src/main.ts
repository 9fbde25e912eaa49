#!/usr/bin/env node
/** `cox`. */
import { writeSync } from 'node:fs';
import { dispatch } from './line/dispatch.ts';

// Whatever cannot be written ends the command at once: it would go on for nobody, and sessions lose nothing by it.
for (const stream of [process.stdout, process.stderr]) stream.on('error', endUnwritten);

process.exitCode = await dispatch(process.argv.slice(2), process.env);
// What was written is let out first; then nothing that is still open, such as a connection that was given up half-way,
// keeps the process. A stream says one turn later that a write has failed.
process.stdout.write('', () => process.stderr.write('', () => setImmediate(() => process.exit())));

/** Ends as SIGPIPE ends others where the reader has gone (`cox session export … | head`), else with the reason. */
function endUnwritten(error: NodeJS.ErrnoException): never {
  if (error.code === 'EPIPE') process.exit(141);
  const why = error.code === 'ENOSPC' ? 'the disk or the device is full' : error.message;
  try {
    // Straight to the descriptor: the stream may be the one that failed.
    writeSync(
      2,
      `cox: what it has to say cannot be written: ${why}\n` +
        '  → Make room, or let the output go elsewhere, and give the command again; sessions are not touched by it.\n',
    );
  } catch {
    // Nothing is left to which it could be told: the exit code says it.
  }
  process.exit(1);
}
