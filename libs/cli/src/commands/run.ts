/** `cox run`. */

import { usageError } from '../line/cli-error.ts';
import type { CommandRun } from '../line/command-spec.ts';
import { textOrInput } from '../run/read-input.ts';
import { runPrompt } from '../run/run-prompt.ts';

/** Starts a session, or goes on with one, and stays with it. */
export const run: CommandRun = async (invocation) => {
  const [given] = invocation.args;
  if (given === undefined) {
    throw usageError('cox run needs a prompt: cox run "…" --model provider/name, or - to read it from standard input');
  }
  return runPrompt(invocation, await textOrInput(given, 'the prompt'));
};
