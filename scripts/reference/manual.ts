/** The pages for `man`, from the command table: one of all commands, one of each command or topic. */
import { VERSION } from '@coxswain/protocol';
import { SECTIONS } from '../../libs/cli/src/line/command-table.ts';
import { manualOf, manualPages as pagesOf } from '../../libs/cli/src/line/man-page.ts';

/** The pages by file name; the function returns the text of the page. */
export const manualPages: Readonly<Record<string, () => string>> = {
  'cox.1': () => manualOf(SECTIONS, VERSION),
  ...Object.fromEntries([...pagesOf(SECTIONS, VERSION)].map(([name, text]) => [`${name}.1`, () => text])),
};
