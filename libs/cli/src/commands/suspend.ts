/** `cox suspend`. */
import type { CommandRun } from '../line/command-spec.ts';
import { acceptedAtMost, sendToSession } from '../run/send-to-session.ts';

/** Parks the session. */
export const run: CommandRun = (invocation) =>
  sendToSession(invocation, (session, options) =>
    session.suspend(invocation.flags.text('reason'), acceptedAtMost(options)),
  );
