import type { Stats } from 'node:fs';
import { resolve } from 'node:path';
import { QUOTED, restoreHostTags } from '@coxswain/protocol';
import type { BuiltInTool } from './built-in-tool.ts';
import { readAt } from './open-folder.ts';
import { replaceFile, runInOrder } from './replace-file.ts';
import type { OpenedFile, RootFolder } from './root-folder.ts';
import { TOOL_BOUNDS } from './tool-bounds.ts';
import { succeeded } from './tool-outcome.ts';
import { ToolProblem } from './tool-problem.ts';

const parameters = {
  path: { type: 'string', description: 'Path of the file, relative to the root folder.', minLength: 1 },
  old_text: {
    type: 'string',
    description:
      'The text to replace, exactly as in the file, with whitespace and line endings. It must occur exactly once: ' +
      'include surrounding lines until it does, or set replace_all.',
    minLength: 1,
  },
  new_text: { type: 'string', description: 'The replacement text; empty to delete the old text.' },
  replace_all: { type: 'boolean', description: 'Replace every occurrence. Default: false.', optional: true },
} as const;

/** The tool `edit_file`: replaces an exact text in a file. */
export const editFileTool: BuiltInTool<typeof parameters> = {
  name: 'edit_file',
  description:
    'Replaces text in a UTF-8 file inside the root folder. Fails without a change ' +
    'unless old_text occurs exactly once or replace_all is set.',
  parameters,
  fileArgument: 'path',
  async run({ path, old_text, new_text, replace_all = false }, { root, edited }) {
    if (old_text === new_text) {
      throw new ToolProblem('invalid_call_arguments', 'old_text and new_text are the same', { field: 'new_text' });
    }
    const { path: located } = await root.locate(path);
    const done = await runInOrder(resolve(root.path, located), () =>
      edit(root, located, old_text, new_text, replace_all),
    );
    edited(done.path);
    const { replaced } = done;
    const text = `replaced ${replaced === 1 ? 'one occurrence' : `${replaced} occurrences`} in ${done.path}`;
    return succeeded(text, [], { ...done });
  },
};

async function edit(
  root: RootFolder,
  path: string,
  oldText: string,
  newText: string,
  all: boolean,
): Promise<{ path: string; replaced: number; bytes: number }> {
  const file = await root.openFile(path);
  const { text, read } = await readWhole(file);
  const matches = count(text, oldText);
  if (matches === 0) throw new ToolProblem('tool_failed', notFound(file.path, text, oldText), { matches });
  if (matches > 1 && !all) {
    throw new ToolProblem(
      'tool_failed',
      `old_text occurs ${matches} times in ${file.path}; make it longer until it occurs once, or set replace_all`,
      { matches },
    );
  }
  // Computed first: a short text with many occurrences could become one that does not fit in memory.
  const size = Buffer.byteLength(text) + matches * (Buffer.byteLength(newText) - Buffer.byteLength(oldText));
  if (size > TOOL_BOUNDS.writeMaxBytes) throw tooLarge(file.path, size);
  const edited = Buffer.from(text.split(oldText).join(newText), 'utf8');
  if (edited.length > TOOL_BOUNDS.writeMaxBytes) throw tooLarge(file.path, edited.length);

  // Opened last, because `openPlace` may create folders, and a failed edit must not create any.
  const place = await root.openPlace(file.path);
  try {
    await replaceFile(place, edited, read);
  } finally {
    await place.folder.close();
  }
  return { path: file.path, replaced: matches, bytes: edited.length };
}

/** Reads a whole file and closes it. `read` has its properties before reading. */
async function readWhole(file: OpenedFile): Promise<{ text: string; read: Stats }> {
  try {
    const read = await file.handle.stat();
    if (read.size > TOOL_BOUNDS.writeMaxBytes) throw tooLarge(file.path, read.size);
    return { text: exactText(file.path, await readAt(file.handle, 0, read.size)), read };
  } finally {
    await file.handle.close();
  }
}

function tooLarge(path: string, bytes: number): ToolProblem {
  return new ToolProblem(
    'tool_failed',
    `${path}: ${bytes} bytes are too many; edit_file accepts at most ${TOOL_BOUNDS.writeMaxBytes}`,
  );
}

/**
 * Decodes a file so that writing it back keeps every byte: a byte order mark stays, and other encodings are rejected.
 */
function exactText(path: string, bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new ToolProblem('tool_failed', `${path} is not UTF-8 text, so an edit would damage it`);
  }
}

function count(text: string, wanted: string): number {
  let matches = 0;
  for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length)) matches += 1;
  return matches;
}

function notFound(path: string, text: string, wanted: string): string {
  const sentence = `old_text does not occur in ${path}`;
  if (!wanted.includes('\r\n') && text.replaceAll('\r\n', '\n').includes(wanted)) {
    return `${sentence}: its lines end in \\r\\n, and old_text has \\n`;
  }
  const original = restoreHostTags(wanted);
  if (original !== wanted && text.includes(original))
    return `${sentence}: remove "${QUOTED}", which the host adds before its own tags when it shows you a text`;
  return `${sentence}; read the file again and copy the text exactly`;
}
