/** `cox message edit`. */
import type { CommandRun } from '../../line/command-spec.ts';
import { textOrInput } from '../../run/read-input.ts';
import { acceptedAtMost, sendToSession } from '../../run/send-to-session.ts';

/** Replaces the text of a queued message. */
export const run: CommandRun = async (invocation) => {
  const text = await textOrInput(invocation.args[2] as string, 'the text');
  return sendToSession(invocation, (session, options) =>
    session.replace(invocation.args[1] as string, text, acceptedAtMost(options)),
  );
};
