/** `cox cancel`. */
import type { CommandRun } from '../line/mod.ts';
import { acceptedAtMost, sendToSession } from '../run/mod.ts';

/** Cancels the current run of a session. */
export const run: CommandRun = (invocation) =>
  sendToSession(invocation, (session, options) =>
    session.cancel(invocation.flags.text('reason'), acceptedAtMost(options)),
  );
