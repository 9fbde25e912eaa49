/** `cox message withdraw`. */
import type { CommandRun } from '../../line/command-spec.ts';
import { acceptedAtMost, sendToSession } from '../../run/send-to-session.ts';

/** Withdraws a queued message, or clears a reminder. */
export const run: CommandRun = (invocation) =>
  sendToSession(invocation, (session, options) =>
    session.revoke(invocation.args[1] as string, acceptedAtMost(options)),
  );
