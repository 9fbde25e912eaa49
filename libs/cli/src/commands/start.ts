/** `cox start`: what `npm start` does. */
import { usageError } from '../line/cli-error.ts';
import type { CommandRun } from '../line/command-spec.ts';
import { textOrInput } from '../run/read-input.ts';
import { runPrompt } from '../run/run-prompt.ts';

/** The demo; or, with a prompt, a run. */
export const run: CommandRun = async (invocation) => {
  const [given] = invocation.args;
  if (given !== undefined) return runPrompt(invocation, await textOrInput(given, 'the prompt'));
  const named = invocation.flags.on('model') ? '--model' : invocation.env.COX_MODEL ? 'COX_MODEL' : null;
  if (named !== null) {
    const forDemo = named === 'COX_MODEL' ? '; it plays the demo if the variable is unset' : '';
    throw usageError(`${named} needs a prompt: npm start -- "what it should do" --model provider/name${forDemo}`);
  }
  const { playDemo } = await import('../demo/play-demo.ts');
  return playDemo(invocation);
};
