/** `cox help`. */
import { VERSION } from '@coxswain/protocol/version';
import {
  COMMANDS,
  type CommandRun,
  EXIT,
  manualOf,
  manualPages,
  namedCommand,
  printHelp,
  SECTIONS,
  unknownCommand,
} from '../line/mod.ts';
import { standardStreams } from '../terminal/mod.ts';

/**
 * Prints the help of all commands, of a topic, or of one command. With `--man`, prints the man page that contains it.
 */
export const run: CommandRun = async ({ args, flags }) => {
  const [word] = args;
  const command = namedCommand(args, COMMANDS) ?? null;
  const topic = args.length === 1 ? SECTIONS.find((section) => section.topic === word)?.topic : undefined;
  if (word !== undefined && command === null && topic === undefined) throw unknownCommand(args, COMMANDS);
  if (flags.on('man')) {
    const page = word === undefined ? manualOf(SECTIONS, VERSION) : manualPages(SECTIONS, VERSION).get(`cox-${word}`);
    standardStreams.out(page as string);
    return EXIT.ok;
  }
  printHelp(SECTIONS, { command, topic });
  return EXIT.ok;
};
