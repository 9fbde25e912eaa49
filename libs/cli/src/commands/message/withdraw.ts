/** `cox message withdraw`. */
import type { CommandRun } from '../../line/mod.ts';
import { acceptedAtMost, queuedMessage, sendToSession } from '../../run/mod.ts';

/** Withdraws a queued message, or clears a reminder. */
export const run: CommandRun = (invocation) =>
  sendToSession(invocation, async (session, options, bus) => {
    const commandId = await queuedMessage(bus, session, invocation.args[1] as string);
    return session.revoke(commandId, acceptedAtMost(options));
  });
