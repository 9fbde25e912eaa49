/** `cox help`. */
import { nearestWord } from '@coxswain/protocol/nearest-word';
import { cutGraphemes } from '@coxswain/protocol/unicode-text';
import { VERSION } from '@coxswain/protocol/version';
import { EXIT, usageError } from '../line/cli-error.ts';
import type { CommandRun } from '../line/command-spec.ts';
import { COMMANDS } from '../line/command-table.ts';
import { printHelp } from '../line/help.ts';
import { manualOf, manualOfCommand } from '../line/man-page.ts';
import { standardStreams } from '../terminal/streams.ts';

/** Prints the help of all commands, of one, or of a part of one; as a page for `man` where that is asked for. */
export const run: CommandRun = async ({ args, flags }) => {
  const [name, partName] = args;
  const command = name === undefined ? null : (COMMANDS.find((one) => one.name === name) ?? unknown(name));
  if (flags.on('man')) {
    standardStreams.out(command === null ? manualOf(COMMANDS, VERSION) : manualOfCommand(command, VERSION));
    return EXIT.ok;
  }
  printHelp(COMMANDS, { command, part: command?.parts?.find((part) => part.name === partName) }, VERSION);
  return EXIT.ok;
};

function unknown(name: string): never {
  const names = COMMANDS.map((command) => command.name);
  const near = nearestWord(name, names);
  throw usageError(
    `there is no command "${cutGraphemes(name, 64)}"${near === null ? '; see cox help' : `; did you mean cox help ${near}?`}`,
  );
}
