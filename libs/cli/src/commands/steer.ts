/** `cox steer`. */
import type { CommandRun } from '../line/command-spec.ts';
import { inject } from '../run/inject.ts';

/** Sends a message into a running session. */
export const run: CommandRun = (invocation) =>
  inject(invocation, 'message', (session, text, options) => session.steer(text, options));
