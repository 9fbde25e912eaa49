/** Files as the editor has them, changes that are not saved included. */
import { realpath } from 'node:fs/promises';
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { type AgentContext, methods, type ReadTextFileRequest } from '@agentclientprotocol/sdk';
import { TOOL_BOUNDS } from '@coxswain/adapter-tools';
import type { ToolResult } from '@coxswain/protocol';
import { KeyedTurns } from './keyed-turns.ts';

const NOT_FOUND = -32_002;

/** The files of one session's folder. Paths are relative to it, and cannot leave it. What fails is thrown as an error for the model. */
export class EditorFiles {
  readonly #client: AgentContext;
  readonly #sessionId: string;
  readonly #root: string;
  /** Changes of one file wait for one another, in the order in which they were begun. */
  readonly #turns = new KeyedTurns();

  constructor(client: AgentContext, sessionId: string, root: string) {
    this.#client = client;
    this.#sessionId = sessionId;
    this.#root = root;
  }

  /** Lines of a file. */
  async read(path: string, offset = 1, limit: number = TOOL_BOUNDS.readLinesDefault): Promise<ToolResult> {
    const file = await this.#place(path);
    // A line more than is shown tells whether there is more.
    const asked: ReadTextFileRequest = { sessionId: this.#sessionId, path: file, line: offset, limit: limit + 1 };
    const { content } = await this.#client.request(methods.client.fs.readTextFile, asked);
    const lines = content.split(/(?<=\n)/);
    let shown = '';
    let count = 0;
    for (const line of lines.slice(0, limit)) {
      if (jsonBytes(shown) + jsonBytes(line) > SHOWN_MAX_BYTES) break;
      shown += line;
      count += 1;
    }
    if (count === 0 && lines[0] !== undefined) shown = lines[0].slice(0, SHOWN_MAX_BYTES / 8);
    const next = offset + Math.max(count, 1);
    const notes = lines.length > count ? [`[the file goes on: read on with offset ${next}]`] : [];
    if (content === '') notes.push(`[nothing stands there from line ${offset} on]`);
    return textResult([shown, ...notes], { path: this.shown(file), ...(notes.length ? { next_offset: next } : {}) });
  }

  /** Puts a text in the place of a file, or makes it. */
  async write(path: string, content: string): Promise<ToolResult> {
    const file = await this.#place(path);
    await this.#turns.run(file, () => this.#put(file, content));
    const bytes = Buffer.byteLength(content);
    return textResult([`wrote ${this.shown(file)}, ${bytes} bytes`], { path: this.shown(file), bytes });
  }

  /** Puts a text at the end of a file, or makes it. */
  async append(path: string, content: string): Promise<ToolResult> {
    const file = await this.#place(path);
    await this.#turns.run(file, async () => this.#put(file, `${(await this.#whole(file)) ?? ''}${content}`));
    const bytes = Buffer.byteLength(content);
    return textResult([`added ${bytes} bytes to ${this.shown(file)}`], {
      path: this.shown(file),
      appended_bytes: bytes,
    });
  }

  /** Puts one text in the place of another, which stands in the file once, or as often as it likes where `all` is set. */
  async edit(path: string, oldText: string, newText: string, all: boolean): Promise<ToolResult> {
    if (oldText === newText) throw new Error('old_text and new_text are the same');
    const file = await this.#place(path);
    return this.#turns.run(file, async () => {
      const parts = (await this.#whole(file))?.split(oldText);
      const name = this.shown(file);
      if (!parts) throw new Error(`there is no file ${name}`);
      const matches = parts.length - 1;
      if (matches === 0)
        throw new Error(`old_text does not occur in ${name}; read the file again and copy the text exactly`);
      if (matches > 1 && !all)
        throw new Error(
          `old_text occurs ${matches} times in ${name}; make it longer until it occurs once, or set replace_all`,
        );
      await this.#put(file, parts.join(newText));
      return textResult([`replaced ${matches} in ${name}`], { path: name, replaced: matches });
    });
  }

  async #put(file: string, content: string): Promise<void> {
    const bytes = Buffer.byteLength(content);
    if (bytes > TOOL_BOUNDS.writeMaxBytes)
      throw new Error(`${bytes} bytes are too many; ${TOOL_BOUNDS.writeMaxBytes} can be written`);
    await this.#client.request(methods.client.fs.writeTextFile, { sessionId: this.#sessionId, path: file, content });
  }

  /** Null where there is no such file. */
  async #whole(file: string): Promise<string | null> {
    const asked: ReadTextFileRequest = { sessionId: this.#sessionId, path: file };
    try {
      return (await this.#client.request(methods.client.fs.readTextFile, asked)).content;
    } catch (error) {
      const { code } = error as { readonly code?: unknown };
      if (code === NOT_FOUND || !(await exists(file))) return null;
      throw error;
    }
  }

  /** The path of a file relative to the folder, as hooks and models are told it. */
  shown(file: string): string {
    return relative(this.#root, resolve(this.#root, file)).split(sep).join('/');
  }

  /** Where a path leads, links followed as far as there is something. */
  async #place(path: string): Promise<string> {
    const file = resolve(this.#root, path);
    if (file === resolve(this.#root) || !isInside(this.#root, file)) throw outside(path);
    const root = await realpath(this.#root).catch(() => this.#root);
    if (!isInside(root, await realOf(file))) throw outside(path);
    return file;
  }
}

const SHOWN_MAX_BYTES = TOOL_BOUNDS.resultMaxBytes - TOOL_BOUNDS.resultFrameMaxBytes;

function jsonBytes(text: string): number {
  return Buffer.byteLength(JSON.stringify(text));
}

function outside(path: string): Error {
  return new Error(`${path} leads out of the session's folder`);
}

function isInside(root: string, path: string): boolean {
  const way = relative(root, path);
  return !isAbsolute(way) && way !== '..' && !way.startsWith(`..${sep}`);
}

/** The real path of what is there, and below it what is not there yet. */
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

/** A result of texts. */
export function textResult(texts: readonly string[], detail: ToolResult['detail'], isError = false): ToolResult {
  const content = texts.filter((text) => text !== '').map((text) => ({ type: 'text' as const, text }));
  return { content: content.length > 0 ? content : [{ type: 'text', text: '' }], is_error: isError, detail };
}
