/** `cox message edit`. */
import type { CommandRun } from '../../line/mod.ts';
import { acceptedAtMost, queuedMessage, sendToSession, textOrInput } from '../../run/mod.ts';

/** Replaces the text of a queued message. */
export const run: CommandRun = async (invocation) => {
  const text = await textOrInput(invocation.args[2] as string, 'the text');
  return sendToSession(invocation, async (session, options, bus) => {
    const commandId = await queuedMessage(bus, session, invocation.args[1] as string);
    return session.replace(commandId, text, acceptedAtMost(options));
  });
};
