/** `cox message edit`. */
import type { CommandRun } from '../../line/mod.ts';
import { acceptedAtMost, sendToSession, textOrInput } from '../../run/mod.ts';

/** Replaces the text of a queued message. */
export const run: CommandRun = async (invocation) => {
  const text = await textOrInput(invocation.args[2] as string, 'the text');
  return sendToSession(invocation, (session, options) =>
    session.replace(invocation.args[1] as string, text, acceptedAtMost(options)),
  );
};
