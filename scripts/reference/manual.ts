/** The pages for `man`, from the command table: one of all commands, one of each command or topic. */
import { VERSION } from '@coxswain/protocol';
import { SECTIONS } from '../../libs/cli/src/line/command-table.ts';
import { manualOf, manualPages as pagesOf } from '../../libs/cli/src/line/man-page.ts';

/** docs/man/*.1 */
export const manualPages: Readonly<Record<string, () => string>> = {
  'docs/man/cox.1': () => manualOf(SECTIONS, VERSION),
  ...Object.fromEntries([...pagesOf(SECTIONS, VERSION)].map(([name, text]) => [`docs/man/${name}.1`, () => text])),
};
