/** The man pages, from the command table: one for all commands, and one for each command or topic. */
import { VERSION } from '@coxswain/protocol';
import { SECTIONS } from '../../libs/cli/src/line/command-table.ts';
import { manualOf, manualPages as pagesOf } from '../../libs/cli/src/line/man-page.ts';

/** Functions that return the text of a page, by file name. */
export const manualPages: Readonly<Record<string, () => string>> = {
  'cox.1': () => manualOf(SECTIONS, VERSION),
  ...Object.fromEntries([...pagesOf(SECTIONS, VERSION)].map(([name, text]) => [`${name}.1`, () => text])),
};
