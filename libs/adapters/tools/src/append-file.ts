import { constants as fs } from 'node:fs';
import { resolve } from 'node:path';
import type { BuiltInTool } from './built-in-tool.ts';
import { runInOrder } from './replace-file.ts';
import type { Place } from './root-folder.ts';
import { TOOL_BOUNDS } from './tool-bounds.ts';
import { succeeded } from './tool-outcome.ts';
import { systemProblem, ToolProblem } from './tool-problem.ts';

const parameters = {
  path: {
    type: 'string',
    description: 'Path of the file, relative to the root folder. Missing files and folders are created.',
    minLength: 1,
  },
  content: {
    type: 'string',
    description: 'Text to append, exactly as given. Start or end it with a newline where you need one.',
    minLength: 1,
  },
} as const;

/** The tool `append_file`: appends text to a file. */
export const appendFileTool: BuiltInTool<typeof parameters> = {
  name: 'append_file',
  description: 'Appends text to a file inside the root folder. The existing content does not change.',
  parameters,
  fileArgument: 'path',
  async run({ path, content }, { root, edited }) {
    const bytes = Buffer.from(content, 'utf8');
    if (bytes.length > TOOL_BOUNDS.writeMaxBytes) {
      throw new ToolProblem(
        'tool_failed',
        `${bytes.length} bytes are too many; append_file accepts at most ${TOOL_BOUNDS.writeMaxBytes}`,
      );
    }
    const place = await root.openPlace(path);
    try {
      const { size, isNew } = await runInOrder(resolve(root.path, place.path), () => append(place, bytes));
      edited(place.path);
      return succeeded(`added ${bytes.length} bytes to ${place.path}, which now has ${size}`, [], {
        path: place.path,
        appended_bytes: bytes.length,
        bytes: size,
        created: isNew,
      });
    } catch (error) {
      throw systemProblem(place.path, error);
    } finally {
      await place.folder.close();
    }
  },
};

async function append(place: Place, bytes: Uint8Array): Promise<{ size: number; isNew: boolean }> {
  const before = await place.folder.look(place.name);
  if (before !== null && !before.isFile()) throw new ToolProblem('tool_failed', `${place.path} is not a regular file`);
  const handle = await place.folder.openFile(place.name, fs.O_WRONLY | fs.O_CREAT | fs.O_APPEND, 0o666);
  try {
    await handle.writeFile(bytes);
    await handle.sync();
    return { size: (await handle.stat()).size, isNew: before === null };
  } finally {
    await handle.close();
  }
}
