/** `cox steer`. */
import type { CommandRun } from '../line/mod.ts';
import { inject } from '../run/mod.ts';

/** Sends a message into a running session. */
export const run: CommandRun = (invocation) =>
  inject(invocation, 'message', (session, text, options) => session.steer(text, options));
