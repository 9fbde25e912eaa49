/** The pages for `man`, from the command table: one of all commands, and one of each. */
import { VERSION } from '@coxswain/protocol';
import { COMMANDS } from '../../libs/cli/src/line/command-table.ts';
import { manualOf, manualOfCommand } from '../../libs/cli/src/line/man-page.ts';

/** docs/man/*.1 */
export const manualPages: Readonly<Record<string, () => string>> = {
  'docs/man/cox.1': () => manualOf(COMMANDS, VERSION),
  ...Object.fromEntries(
    COMMANDS.map((command) => [`docs/man/cox-${command.name}.1`, () => manualOfCommand(command, VERSION)]),
  ),
};
