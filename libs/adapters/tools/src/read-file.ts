import type { FileHandle } from 'node:fs/promises';
import type { ToolOutcome } from '@coxswain/ports';
import { binaryMediaType, SNIFF_BYTES } from '@coxswain/protocol';
import { headWithin, jsonBytes } from './bounded-text.ts';
import type { BuiltInTool } from './built-in-tool.ts';
import { readAt } from './open-folder.ts';
import type { OpenedFile } from './root-folder.ts';
import { TOOL_BOUNDS } from './tool-bounds.ts';
import { succeeded } from './tool-outcome.ts';
import { ToolProblem } from './tool-problem.ts';

const parameters = {
  path: { type: 'string', description: 'Path of the file, relative to the root folder.', minLength: 1 },
  offset: {
    type: 'integer',
    description: 'The number of the first line to read, from 1. Text files only.',
    minimum: 1,
    maximum: Number.MAX_SAFE_INTEGER,
    optional: true,
  },
  limit: {
    type: 'integer',
    description: `The number of lines to read. Default: ${TOOL_BOUNDS.readLinesDefault}. Text files only.`,
    minimum: 1,
    maximum: TOOL_BOUNDS.readLinesMax,
    optional: true,
  },
} as const;

/** The tool `read_file`: reads lines of a text file, or a whole binary file. */
export const readFileTool: BuiltInTool<typeof parameters> = {
  name: 'read_file',
  description:
    'Reads a file inside the root folder. Text is returned exactly as in the file, without line numbers. ' +
    'If the file is longer, a note gives the offset to continue with. Images and other binary files are returned ' +
    'as files.',
  parameters,
  fileArgument: 'path',
  traits: { idempotent: true },
  async run({ path, offset = 1, limit = TOOL_BOUNDS.readLinesDefault }, { root, bounds, abortSignal: signal }) {
    const file = await root.openFile(path);
    try {
      const beginning = await readAt(file.handle, 0, SNIFF_BYTES);
      const mediaType = binaryMediaType(beginning);
      if (mediaType !== null) return await wholeFile(file, mediaType, bounds.fileMaxBytes);
      return describeWindow(file, offset, await readWindow(file.handle, offset, limit, bounds.textMaxBytes, signal));
    } finally {
      await file.handle.close();
    }
  },
};

async function wholeFile(file: OpenedFile, mediaType: string, maxBytes: number): Promise<ToolOutcome> {
  const { path, bytes } = file;
  if (bytes > maxBytes) {
    throw new ToolProblem('tool_failed', `${path} (${mediaType}) has ${bytes} bytes; the limit is ${maxBytes}`, {
      path,
      bytes,
    });
  }
  // One byte more than the limit shows that the file has grown.
  const content = await readAt(file.handle, 0, maxBytes + 1);
  if (content.length > maxBytes) throw new ToolProblem('tool_failed', `${path} grew during the read`);
  const filename = path.slice(path.lastIndexOf('/') + 1);
  return {
    status: 'ok',
    result: {
      content: [{ type: 'file', media_type: mediaType, filename, data: content.toString('base64') }],
      is_error: false,
      detail: { path, bytes: content.length, media_type: mediaType },
    },
  };
}

interface Window {
  /** The exact lines. */
  readonly text: string;
  /** The number of the first line that was not read; null at the end of the file. */
  readonly next: number | null;
  /** The number of a line that was cut, or null. */
  readonly cutLine: number | null;
  /** The number of lines of the file, if its end was reached. */
  readonly lines: number | null;
  /** Whether the text has U+FFFD, which replaces invalid UTF-8 bytes. */
  readonly replaced: boolean;
}

async function readWindow(
  handle: FileHandle,
  offset: number,
  limit: number,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Window> {
  const decoder = new TextDecoder('utf-8');
  const beyond = offset + limit;
  let text = '';
  let line = 1;
  let position = 0;
  let openLine = false;
  let left = '';
  let fileEnded = false;
  // Each character takes at least one byte, so a window with more characters than `maxBytes` cannot fit.
  while (!fileEnded && line < beyond && text.length <= maxBytes) {
    signal.throwIfAborted();
    if (position > TOOL_BOUNDS.readScanMaxBytes) {
      throw new ToolProblem('tool_failed', `line ${offset} is beyond the first ${TOOL_BOUNDS.readScanMaxBytes} bytes`);
    }
    const bytes = await readAt(handle, position, CHUNK_BYTES);
    position += bytes.length;
    fileEnded = bytes.length < CHUNK_BYTES;
    left = decoder.decode(bytes, { stream: !fileEnded });
    while (left !== '' && line < beyond) {
      const newline = left.indexOf('\n');
      const end = newline < 0 ? left.length : newline + 1;
      if (line >= offset) text += left.slice(0, end);
      left = left.slice(end);
      openLine = newline < 0;
      if (!openLine) line += 1;
    }
  }
  const more = left !== '' || (!fileEnded && (await readAt(handle, position, 1)).length > 0);
  return cutWindow(text, offset, line, openLine, !more, maxBytes);
}

const CHUNK_BYTES = 64 * 1024;

/** Cuts the text to the limit, at the end of a line if possible. */
function cutWindow(
  text: string,
  offset: number,
  line: number,
  openLine: boolean,
  ended: boolean,
  maxBytes: number,
): Window {
  const replaced = text.includes('\ufffd');
  if (jsonBytes(text) <= maxBytes) {
    const lines = ended ? (openLine ? line : line - 1) : null;
    return { text, next: ended ? null : line, cutLine: null, lines, replaced };
  }
  const head = headWithin(text, maxBytes);
  const lastNewline = head.lastIndexOf('\n');
  if (lastNewline < 0) return { text: head, next: offset + 1, cutLine: offset, lines: null, replaced };
  const whole = head.slice(0, lastNewline + 1);
  return { text: whole, next: offset + whole.split('\n').length - 1, cutLine: null, lines: null, replaced };
}

function describeWindow(file: OpenedFile, offset: number, window: Window): ToolOutcome {
  const { text, next, cutLine, lines, replaced } = window;
  const notes: string[] = [];
  if (text === '' && lines !== null) {
    notes.push(lines === 0 ? '[the file is empty]' : `[the file ends before line ${offset}: it has ${lines} lines]`);
  }
  if (cutLine !== null) {
    notes.push(
      `[line ${cutLine} is truncated: it is longer than the limit of a result. The next line has offset ${next}]`,
    );
  } else if (next !== null) {
    notes.push(`[the file continues: read more with offset ${next}]`);
  }
  if (replaced) notes.push('[U+FFFD replaces bytes that are not UTF-8]');
  return succeeded(text, notes, {
    path: file.path,
    bytes: file.bytes,
    ...(next === null ? {} : { next_offset: next }),
    ...(lines === null ? {} : { lines }),
  });
}
