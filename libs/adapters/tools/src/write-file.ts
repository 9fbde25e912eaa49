import { resolve } from 'node:path';
import type { BuiltInTool } from './built-in-tool.ts';
import { replaceFile, runInOrder } from './replace-file.ts';
import { TOOL_BOUNDS } from './tool-bounds.ts';
import { succeeded } from './tool-outcome.ts';
import { ToolProblem } from './tool-problem.ts';

const parameters = {
  path: {
    type: 'string',
    description: 'Path of the file, relative to the root folder. Missing folders are created.',
    minLength: 1,
  },
  content: { type: 'string', description: 'The complete content of the file.' },
  encoding: {
    type: 'string',
    description: 'The encoding of content: utf8 (text, the default) or base64 (any bytes).',
    enum: ['utf8', 'base64'],
    optional: true,
  },
} as const;

/** The tool `write_file`: writes a whole file, new or existing. */
export const writeFileTool: BuiltInTool<typeof parameters> = {
  name: 'write_file',
  description:
    'Writes a complete file inside the root folder. The previous content is lost. To change a part of a file, use ' +
    'edit_file.',
  parameters,
  fileArgument: 'path',
  // Writing the same content again has the same result.
  traits: { idempotent: true },
  async run({ path, content, encoding = 'utf8' }, { root, edited }) {
    const bytes = encoding === 'base64' ? fromBase64(content) : Buffer.from(content, 'utf8');
    if (bytes.length > TOOL_BOUNDS.writeMaxBytes) {
      throw new ToolProblem(
        'tool_failed',
        `${bytes.length} bytes are too many; write_file accepts at most ${TOOL_BOUNDS.writeMaxBytes}`,
      );
    }
    const place = await root.openPlace(path);
    try {
      const isNew = await runInOrder(resolve(root.path, place.path), () => replaceFile(place, bytes));
      edited(place.path);
      return succeeded(`${isNew ? 'created' : 'replaced'} ${place.path}, ${bytes.length} bytes`, [], {
        path: place.path,
        bytes: bytes.length,
        created: isNew,
      });
    } finally {
      await place.folder.close();
    }
  },
};

/** Decodes strictly. Node's decoder skips invalid characters, and the file would lack bytes without an error. */
function fromBase64(content: string): Buffer {
  const compact = content.replace(/\s+/g, '');
  const bytes = Buffer.from(compact, 'base64');
  if (withoutPadding(bytes.toString('base64')) !== withoutPadding(compact)) {
    throw new ToolProblem('invalid_call_arguments', 'the argument content is not base64', { field: 'content' });
  }
  return bytes;
}

/** In linear time: a regular expression for trailing padding would backtrack over each run of it. */
function withoutPadding(base64: string): string {
  let end = base64.length;
  while (base64[end - 1] === '=') end -= 1;
  return base64.slice(0, end);
}
