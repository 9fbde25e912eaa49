/** The tool `list_files`: what is in a folder. */
import { BoundedLines } from './bounded-lines.ts';
import type { BuiltInTool } from './built-in-tool.ts';
import { shownNotes, type WalkEntry, type WalkNotes, walk } from './folder-walk.ts';
import { pathGlob } from './path-glob.ts';
import { TOOL_BOUNDS } from './tool-bounds.ts';
import { succeeded } from './tool-outcome.ts';

const parameters = {
  path: {
    type: 'string',
    description: 'Path of the folder, relative to the root folder; the root folder itself if not given.',
    minLength: 1,
    optional: true,
  },
  glob: {
    type: 'string',
    description:
      'List only what matches, for example *.ts, src/**/*.ts or **/{a,b}.json. * stays within a name, ** goes over ' +
      'folders; a glob without a slash is matched against names alone.',
    minLength: 1,
    maxLength: TOOL_BOUNDS.globMaxChars,
    optional: true,
  },
  recursive: {
    type: 'boolean',
    description: 'Look into the folders below as well; if not given, only where a glob is.',
    optional: true,
  },
  limit: {
    type: 'integer',
    description: `How many entries to list; ${TOOL_BOUNDS.listEntriesDefault} if not given.`,
    minimum: 1,
    maximum: TOOL_BOUNDS.listEntriesMax,
    optional: true,
  },
} as const;

/** See the file's header. */
export const listFilesTool: BuiltInTool<typeof parameters> = {
  name: 'list_files',
  description:
    'Lists a folder inside the root folder, one path per line, relative to the root and sorted. Folders end in /, ' +
    'symbolic links in @. Folders named .git and node_modules are listed and not looked into.',
  parameters,
  traits: { idempotent: true },
  async run({ path = '.', glob, recursive = glob !== undefined, limit = TOOL_BOUNDS.listEntriesDefault }, context) {
    const { root, bounds, abortSignal: signal } = context;
    const matches = glob === undefined ? () => true : pathGlob(glob);
    const folder = await root.openFolder(path);
    const prefix = root.shown(folder.path) === '.' ? '' : `${root.shown(folder.path)}/`;
    const lines = new BoundedLines(limit, bounds.textMaxBytes);
    const notes: WalkNotes = new Set();
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
    if (more) notes.add(`there are more than these ${lines.count}: raise limit, or narrow path or glob`);
    if (lines.count === 0) notes.add(glob === undefined ? 'the folder is empty' : 'nothing matches');
    return succeeded(lines.text, shownNotes(notes), { entries: lines.count, more });
  },
};

const MARKS: Readonly<Record<WalkEntry['kind'], string>> = { file: '', folder: '/', link: '@', other: '' };
