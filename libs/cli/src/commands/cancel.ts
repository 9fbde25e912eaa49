/** `cox cancel`. */
import type { CommandRun } from '../line/command-spec.ts';
import { acceptedAtMost, sendToSession } from '../run/send-to-session.ts';

/** Cancels the current run of a session. */
export const run: CommandRun = (invocation) =>
  sendToSession(invocation, (session, options) =>
    session.cancel(invocation.flags.text('reason'), acceptedAtMost(options)),
  );
