import { BoundedLines } from './bounded-lines.ts';
import type { BuiltInTool } from './built-in-tool.ts';
import { type WalkEntry, WalkNotes, walk } from './folder-walk.ts';
import { pathGlob } from './path-glob.ts';
import { TOOL_BOUNDS } from './tool-bounds.ts';
import { succeeded } from './tool-outcome.ts';

const parameters = {
  path: {
    type: 'string',
    description: 'Path of the folder, relative to the root folder. Default: the root folder.',
    minLength: 1,
    optional: true,
  },
  glob: {
    type: 'string',
    description:
      'List only matching paths, for example *.ts, src/**/*.ts or **/{a,b}.json. * matches within a name, ** matches across ' +
      'folders. A glob without a slash matches names only.',
    minLength: 1,
    maxLength: TOOL_BOUNDS.globMaxChars,
    optional: true,
  },
  recursive: {
    type: 'boolean',
    description: 'List subfolders, too. Default: true with a glob, false without.',
    optional: true,
  },
  limit: {
    type: 'integer',
    description: `The number of entries to list. Default: ${TOOL_BOUNDS.listEntriesDefault}.`,
    minimum: 1,
    maximum: TOOL_BOUNDS.listEntriesMax,
    optional: true,
  },
} as const;

/** The tool `list_files`: lists a folder. */
export const listFilesTool: BuiltInTool<typeof parameters> = {
  name: 'list_files',
  description:
    'Lists a folder inside the root folder, one sorted path per line, relative to the root. Folders end in /, ' +
    'symbolic links in @. Folders named .git and node_modules are listed, but their content is not.',
  parameters,
  traits: { idempotent: true },
  async run({ path = '.', glob, recursive = glob !== undefined, limit = TOOL_BOUNDS.listEntriesDefault }, context) {
    const { root, bounds, abortSignal: signal } = context;
    const matches = glob === undefined ? () => true : pathGlob(glob);
    const folder = await root.openFolder(path);
    const prefix = root.shown(folder.path) === '.' ? '' : `${root.shown(folder.path)}/`;
    const lines = new BoundedLines(limit, bounds.textMaxBytes);
    const notes = new WalkNotes();
    let more = false;
    try {
      for await (const entry of walk(folder, recursive, signal, notes)) {
        if (!matches(entry.path)) continue;
        if (lines.add(prefix + entry.path + MARKS[entry.kind])) continue;
        more = true;
        break;
      }
    } finally {
      await folder.close();
    }
    if (more) notes.add(`there are more than these ${lines.count} entries: raise limit, or narrow path or glob`);
    if (lines.count === 0) notes.add(glob === undefined ? 'the folder is empty' : 'nothing matches');
    return succeeded(lines.text, notes.lines, { entries: lines.count, more });
  },
};

const MARKS: Readonly<Record<WalkEntry['kind'], string>> = { file: '', folder: '/', link: '@', other: '' };
