import { constants as fs } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { setImmediate as nextTick } from 'node:timers/promises';
import type { ToolOutcome } from '@coxswain/ports';
import { binaryMediaType, cutText, regexMatches, regexProblem } from '@coxswain/protocol';
import { BoundedLines } from './bounded-lines.ts';
import type { BuiltInContext, BuiltInTool } from './built-in-tool.ts';
import { WalkNotes, walk } from './folder-walk.ts';
import { readAt } from './open-folder.ts';
import { pathGlob } from './path-glob.ts';
import { TOOL_BOUNDS } from './tool-bounds.ts';
import { succeeded } from './tool-outcome.ts';
import { ToolProblem } from './tool-problem.ts';

const parameters = {
  pattern: {
    type: 'string',
    description:
      'Regular expression in RE2 syntax (no look-around, no back-references). Each line is searched separately.',
    minLength: 1,
    // Leaves room for the (?i) of ignore_case.
    maxLength: 500,
  },
  path: {
    type: 'string',
    description: 'Folder or file to search, relative to the root folder. Default: the root folder.',
    minLength: 1,
    optional: true,
  },
  glob: {
    type: 'string',
    description: 'Search only matching files, for example *.ts or src/**/*.{ts,tsx}, as for list_files.',
    minLength: 1,
    maxLength: TOOL_BOUNDS.globMaxChars,
    optional: true,
  },
  ignore_case: {
    type: 'boolean',
    description: 'Ignore case. Default: false.',
    optional: true,
  },
  limit: {
    type: 'integer',
    description: `The number of matching lines to show. Default: ${TOOL_BOUNDS.searchMatchesDefault}.`,
    minimum: 1,
    maximum: TOOL_BOUNDS.searchMatchesMax,
    optional: true,
  },
} as const;

/** The tool `search_files`: finds lines that match a regular expression. */
export const searchFilesTool: BuiltInTool<typeof parameters> = {
  name: 'search_files',
  description:
    'Searches text files inside the root folder and shows the matching lines as path:line:text. Binary files, very ' +
    'large files, symbolic links and folders named .git and node_modules are skipped.',
  parameters,
  traits: { idempotent: true },
  async run({ pattern, path = '.', glob, ignore_case = false, limit = TOOL_BOUNDS.searchMatchesDefault }, context) {
    const expression = ignore_case ? `(?i)${pattern}` : pattern;
    const problem = regexProblem(expression);
    if (problem !== null) throw new ToolProblem('invalid_call_arguments', problem, { field: 'pattern' });
    const search = new Search(expression, new BoundedLines(limit, context.bounds.textMaxBytes), context.abortSignal);
    const wanted = glob === undefined ? () => true : pathGlob(glob);
    if (await context.root.isFolder(path)) await searchFolder(search, path, wanted, context);
    else await searchFile(search, path, context);
    return search.outcome();
  },
};

async function searchFolder(
  search: Search,
  path: string,
  wanted: (path: string) => boolean,
  { root, abortSignal: signal }: BuiltInContext,
): Promise<void> {
  const folder = await root.openFolder(path);
  const prefix = root.shown(folder.path) === '.' ? '' : `${root.shown(folder.path)}/`;
  try {
    for await (const entry of walk(folder, true, signal, search.notes)) {
      if (entry.kind !== 'file' || !wanted(entry.path)) continue;
      let handle: FileHandle;
      try {
        handle = await entry.folder.openFile(entry.name, fs.O_RDONLY);
      } catch {
        // The file may have been removed, replaced by a link, or not be readable. A note reports it, and the search
        // continues.
        search.notes.skip(`not searched, it could not be opened: ${prefix}${entry.path}`);
        continue;
      }
      try {
        if (!(await search.inFile(prefix + entry.path, handle))) return;
      } finally {
        await handle.close();
      }
    }
  } finally {
    await folder.close();
  }
}

async function searchFile(search: Search, path: string, { root }: BuiltInContext): Promise<void> {
  const file = await root.openFile(path);
  try {
    await search.inFile(file.path, file.handle);
  } finally {
    await file.handle.close();
  }
}

/** One search, with its matches and its notes about skipped files. */
class Search {
  readonly notes = new WalkNotes();
  readonly #expression: string;
  readonly #lines: BoundedLines;
  readonly #signal: AbortSignal;
  #files = 0;
  #tooLarge = 0;
  #scannedBytes = 0;
  #sinceYield = 0;

  constructor(expression: string, lines: BoundedLines, signal: AbortSignal) {
    this.#expression = expression;
    this.#lines = lines;
    this.#signal = signal;
  }

  /** Searches one file. Returns false if a limit is reached and the search has ended. */
  async inFile(path: string, handle: FileHandle): Promise<boolean> {
    this.#signal.throwIfAborted();
    const found = await handle.stat();
    if (!found.isFile()) return true;
    const { size } = found;
    if (size > TOOL_BOUNDS.searchFileMaxBytes) {
      this.#tooLarge += 1;
      return true;
    }
    if (this.#scannedBytes + size > TOOL_BOUNDS.searchScanMaxBytes) {
      this.notes.add(`stopped after ${this.#scannedBytes} bytes in ${this.#files} files: narrow path or glob`);
      return false;
    }
    const bytes = await readAt(handle, 0, size);
    this.#scannedBytes += bytes.length;
    if (binaryMediaType(bytes) !== null) return true;
    this.#files += 1;
    return this.#inText(path, bytes.toString('utf8'));
  }

  async #inText(path: string, text: string): Promise<boolean> {
    let number = 0;
    for (let from = 0; from < text.length; ) {
      const newline = text.indexOf('\n', from);
      const to = newline < 0 ? text.length : newline;
      const line = text.slice(from, to).replace(/\r$/, '');
      from = to + 1;
      number += 1;
      if (this.#matches(line) && !this.#lines.add(`${path}:${number}:${shownLine(line)}`)) {
        this.notes.add(
          `there are more than these ${this.#lines.count} matching lines: raise limit, or narrow the search`,
        );
        return false;
      }
      this.#sinceYield += line.length + 1;
      if (this.#sinceYield >= YIELD_CHARS) await this.#yield();
    }
    return true;
  }

  #matches(line: string): boolean {
    const { searchLineScanMaxChars: max } = TOOL_BOUNDS;
    if (line.length > max) this.notes.add(`only the beginning of lines with more than ${max} characters was searched`);
    const found = regexMatches(this.#expression, line.slice(0, max));
    if (found === null) this.notes.add('lines that are too long for an expression of this size were not searched');
    return found === true;
  }

  /** Matching blocks the thread, so other sessions must get a turn in between. */
  async #yield(): Promise<void> {
    this.#sinceYield = 0;
    await nextTick();
    this.#signal.throwIfAborted();
  }

  outcome(): ToolOutcome {
    if (this.#tooLarge > 0) {
      this.notes.add(`${this.#tooLarge} files of more than ${TOOL_BOUNDS.searchFileMaxBytes} bytes were not searched`);
    }
    if (this.#lines.count === 0) this.notes.add(`no line matches in ${this.#files} text files`);
    const detail = { matches: this.#lines.count, files_searched: this.#files };
    return succeeded(this.#lines.text, this.notes.lines, detail);
  }
}

const YIELD_CHARS = 128 * 1024;

function shownLine(line: string): string {
  if (line.length <= TOOL_BOUNDS.searchLineMaxChars) return line;
  const shown = cutText(line, TOOL_BOUNDS.searchLineMaxChars);
  return `${shown} [... ${line.length - shown.length} more]`;
}
