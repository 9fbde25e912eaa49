/** `cox message withdraw`. */
import type { CommandRun } from '../../line/mod.ts';
import { acceptedAtMost, sendToSession } from '../../run/mod.ts';

/** Withdraws a queued message, or clears a reminder. */
export const run: CommandRun = (invocation) =>
  sendToSession(invocation, (session, options) =>
    session.revoke(invocation.args[1] as string, acceptedAtMost(options)),
  );
