/** `cox run`. */
import { type CommandRun, EXIT, type Invocation, usageError } from '../line/mod.ts';
import { runPrompt, textOrInput } from '../run/mod.ts';
import { isInteractive } from '../terminal/mod.ts';

/**
 * Starts or continues a session, and joins it. Without a prompt, an interactive terminal asks for prompts one after
 * another. Exits 2 if it cannot ask.
 */
export const run: CommandRun = async (invocation) => {
  const [given] = invocation.args;
  if (given !== undefined) return runPrompt(invocation, await textOrInput(given, 'the prompt'));
  if (!canType(invocation)) {
    throw usageError('cox run needs a prompt: cox run "…" --model provider/name, or - to read it from standard input');
  }
  const { typePrompt } = await import('../run/typed-prompt.ts');
  const prompt = await typePrompt(invocation.env);
  return prompt === null ? EXIT.ok : runPrompt(invocation, prompt, true);
};

/** Whether a person can type: the terminal is interactive, and no flag excludes input. */
function canType({ flags }: Invocation): boolean {
  return isInteractive() && !['json', 'plain', 'detach', 'on-ask'].some((name) => flags.on(name));
}
