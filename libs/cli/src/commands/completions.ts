/** `cox completions`. */

import { cutGraphemes } from '@coxswain/protocol/unicode-text';
import { bashScript } from '../completions/bash.ts';
import { fishScript } from '../completions/fish.ts';
import { zshScript } from '../completions/zsh.ts';
import { type CommandRun, EXIT, SECTIONS, usageError } from '../line/mod.ts';
import { standardStreams } from '../terminal/mod.ts';

const SHELLS = { bash: bashScript, zsh: zshScript, fish: fishScript } as const;

/** Prints the completion script of a shell. Exits 2 for an unknown shell. */
export const run: CommandRun = async ({ args }) => {
  const [shell = ''] = args;
  if (!Object.hasOwn(SHELLS, shell))
    throw usageError(
      `there are completions for ${Object.keys(SHELLS).join(', ')}, not for "${cutGraphemes(shell, 64)}"`,
    );
  standardStreams.out(SHELLS[shell as keyof typeof SHELLS](SECTIONS));
  return EXIT.ok;
};
