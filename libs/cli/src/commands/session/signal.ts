/** `cox session signal`. */
import type { Json } from '@coxswain/protocol';
import { type CommandRun, usageError } from '../../line/mod.ts';
import { acceptedAtMost, sendToSession } from '../../run/mod.ts';

/** Sends a signal to a session, with JSON data if `--data` is given. */
export const run: CommandRun = (invocation) => {
  const data = readData(invocation.flags.text('data'));
  const name = invocation.args[1] as string;
  return sendToSession(invocation, (session, options) => session.signal(name, data, acceptedAtMost(options)));
};

function readData(text: string | undefined): Json | undefined {
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text) as Json;
  } catch (error) {
    throw usageError(`--data takes JSON: ${(error as Error).message}`);
  }
}
