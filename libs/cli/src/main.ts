#!/usr/bin/env node
/** `cox`. */
import { dispatch } from './line/dispatch.ts';

// A reader that has gone (`cox export … | head`) ends the command, as SIGPIPE ends others. Sessions lose nothing by it.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(141);
    throw error;
  });
}

process.exitCode = await dispatch(process.argv.slice(2), process.env);
// What was written is let out first; then nothing that is still open, such as a connection that was given up half-way,
// keeps the process.
process.stdout.write('', () => process.stderr.write('', () => process.exit()));
