/** Reads and writes files through the editor, so that unsaved changes are included. */
import { realpath } from 'node:fs/promises';
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { type AgentContext, methods, type ReadTextFileRequest } from '@agentclientprotocol/sdk';
import { TOOL_BOUNDS } from '@coxswain/adapter-tools';
import { cutText, type ToolResult } from '@coxswain/protocol';
import { KeyedQueue } from '../keyed-queue.ts';

/** A replacement of text in a file. */
export interface TextChange {
  readonly oldText: string;
  readonly newText: string;
  /** Whether every occurrence is replaced. If false, the text must occur exactly once. */
  readonly all: boolean;
}

/**
 * The files in one session's folder. Paths are resolved against the folder and cannot leave it. Methods throw errors
 * whose messages are written for the model.
 */
export class EditorFiles {
  readonly #client: AgentContext;
  readonly #sessionId: string;
  readonly #root: string;
  /** Runs the changes of one file one after another. */
  readonly #queue = new KeyedQueue();

  constructor(client: AgentContext, sessionId: string, root: string) {
    this.#client = client;
    this.#sessionId = sessionId;
    this.#root = root;
  }

  /**
   * Reads lines of a file, up to the size limit of a result. @param offset the first line, from 1. @param limit the
   * maximum number of lines.
   */
  async read(
    path: string,
    signal: AbortSignal,
    offset = 1,
    limit: number = TOOL_BOUNDS.readLinesDefault,
  ): Promise<ToolResult> {
    const file = await this.#place(path);
    // One extra line shows whether the file continues.
    const asked: ReadTextFileRequest = { sessionId: this.#sessionId, path: file, line: offset, limit: limit + 1 };
    const content = await this.#text(asked, signal);
    const lines = content.split(/(?<=\n)/);
    let shown = '';
    let bytes = 0;
    let count = 0;
    for (const line of lines.slice(0, limit)) {
      bytes += jsonBytes(line);
      if (bytes > SHOWN_MAX_BYTES) break;
      shown += line;
      count += 1;
    }
    const notes: string[] = [];
    if (content === '') notes.push(`[the file ends before line ${offset}]`);
    if (count === 0) {
      count = 1;
      shown = cutText(lines[0] as string, SHOWN_MAX_BYTES / 8);
      notes.push(`[line ${offset} is truncated: it is longer than the limit of a result]`);
    }
    const next = offset + count;
    const continues = lines.length > count;
    if (continues) notes.push(`[the file continues: read more with offset ${next}]`);
    return textResult([shown, ...notes], { path: this.shown(file), ...(continues ? { next_offset: next } : {}) });
  }

  /** Creates a file or replaces its content. */
  async write(path: string, content: string, signal: AbortSignal): Promise<ToolResult> {
    const file = await this.#place(path);
    await this.#queue.run(file, () => this.#put(file, content, signal));
    const bytes = Buffer.byteLength(content);
    return textResult([`wrote ${this.shown(file)}, ${bytes} bytes`], { path: this.shown(file), bytes });
  }

  /** Appends a text to a file, or creates the file. */
  async append(path: string, content: string, signal: AbortSignal): Promise<ToolResult> {
    const file = await this.#place(path);
    await this.#queue.run(file, async () =>
      this.#put(file, `${(await this.#whole(file, signal)) ?? ''}${content}`, signal),
    );
    const bytes = Buffer.byteLength(content);
    return textResult([`added ${bytes} bytes to ${this.shown(file)}`], {
      path: this.shown(file),
      appended_bytes: bytes,
    });
  }

  /** Replaces one text with another. Without `all`, the text must occur exactly once. */
  async edit(path: string, change: TextChange, signal: AbortSignal): Promise<ToolResult> {
    const { oldText, newText, all } = change;
    if (oldText === newText) throw new Error('old_text and new_text are the same');
    const file = await this.#place(path);
    return this.#queue.run(file, async () => {
      const text = await this.#whole(file, signal);
      const name = this.shown(file);
      if (text === null) throw new Error(`there is no file ${name}`);
      const parts = text.split(oldText);
      const matches = parts.length - 1;
      if (matches === 0)
        throw new Error(`old_text does not occur in ${name}; read the file again and copy the text exactly`);
      if (matches > 1 && !all)
        throw new Error(
          `old_text occurs ${matches} times in ${name}; make it longer until it occurs once, or set replace_all`,
        );
      // Computed first: a short text with many occurrences could become one that does not fit in memory.
      refuseTooLarge(Buffer.byteLength(text) + matches * (Buffer.byteLength(newText) - Buffer.byteLength(oldText)));
      await this.#put(file, parts.join(newText), signal);
      return textResult([`replaced ${matches} in ${name}`], { path: name, replaced: matches });
    });
  }

  async #put(file: string, content: string, signal: AbortSignal): Promise<void> {
    refuseTooLarge(Buffer.byteLength(content));
    // A call that was cancelled while it read or waited changes nothing.
    signal.throwIfAborted();
    const asked = { sessionId: this.#sessionId, path: file, content };
    await this.#client.request(methods.client.fs.writeTextFile, asked, until(signal));
  }

  async #text(asked: ReadTextFileRequest, signal: AbortSignal): Promise<string> {
    const answer: unknown = await this.#client.request(methods.client.fs.readTextFile, asked, until(signal));
    const { content } = (answer ?? {}) as { readonly content?: unknown };
    // A missing text must not count as an empty file: the next write would overwrite the file.
    if (typeof content !== 'string') throw new Error(`the editor returned no text for ${this.shown(asked.path)}`);
    return content;
  }

  /** The whole text of a file. @returns null if neither the editor nor the disk has the file. */
  async #whole(file: string, signal: AbortSignal): Promise<string | null> {
    signal.throwIfAborted();
    try {
      return await this.#text({ sessionId: this.#sessionId, path: file }, signal);
    } catch (error) {
      if (signal.aborted || (await exists(file))) throw error;
      return null;
    }
  }

  /** The path of a file relative to the folder, with `/` separators, as hooks and models see it. */
  shown(file: string): string {
    return relative(this.#root, resolve(this.#root, file)).split(sep).join('/');
  }

  /**
   * Resolves a path inside the folder. Throws if the path, or a symbolic link in its existing part, leaves the folder.
   */
  async #place(path: string): Promise<string> {
    const file = resolve(this.#root, path);
    if (file === resolve(this.#root) || !isInside(this.#root, file)) throw outside(path);
    const root = await realpath(this.#root).catch(() => this.#root);
    if (!isInside(root, await realOf(file))) throw outside(path);
    return file;
  }
}

/** Options of a request: a cancelled call stops waiting for an unresponsive editor, so that queued calls can run. */
function until(signal: AbortSignal): { readonly cancellationSignal: AbortSignal; readonly stopWaitingOnCancel: true } {
  return { cancellationSignal: signal, stopWaitingOnCancel: true };
}

const SHOWN_MAX_BYTES = TOOL_BOUNDS.resultMaxBytes - TOOL_BOUNDS.resultFrameMaxBytes;

/** The size of a text in a JSON string in bytes, without the quotes. */
function jsonBytes(text: string): number {
  return Buffer.byteLength(JSON.stringify(text)) - 2;
}

function refuseTooLarge(bytes: number): void {
  if (bytes > TOOL_BOUNDS.writeMaxBytes)
    throw new Error(`${bytes} bytes are too many; ${TOOL_BOUNDS.writeMaxBytes} can be written`);
}

function outside(path: string): Error {
  return new Error(`${path} is outside the session's folder`);
}

function isInside(root: string, path: string): boolean {
  const way = relative(root, path);
  return !isAbsolute(way) && way !== '..' && !way.startsWith(`..${sep}`);
}

/** The real path of the existing part, joined with the rest of the path. */
async function realOf(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch {
    const above = dirname(path);
    if (above === path) return path;
    return join(await realOf(above), relative(above, path));
  }
}

async function exists(file: string): Promise<boolean> {
  return realpath(file).then(
    () => true,
    () => false,
  );
}

/** A tool result of texts. Empty texts are left out. */
export function textResult(texts: readonly string[], detail: ToolResult['detail'], isError = false): ToolResult {
  const content = texts.filter((text) => text !== '').map((text) => ({ type: 'text' as const, text }));
  return { content: content.length > 0 ? content : [{ type: 'text', text: '' }], is_error: isError, detail };
}
