/** Files as the editor has them, changes that are not saved included. */
import { realpath } from 'node:fs/promises';
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { type AgentContext, methods, type ReadTextFileRequest } from '@agentclientprotocol/sdk';
import { TOOL_BOUNDS } from '@coxswain/adapter-tools';
import { cutText, type ToolResult } from '@coxswain/protocol';
import { KeyedTurns } from './keyed-turns.ts';

/** What of a file becomes what. */
export interface TextChange {
  readonly oldText: string;
  readonly newText: string;
  /** Whether every occurrence is replaced; otherwise the text must occur once. */
  readonly all: boolean;
}

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
  async read(
    path: string,
    signal: AbortSignal,
    offset = 1,
    limit: number = TOOL_BOUNDS.readLinesDefault,
  ): Promise<ToolResult> {
    const file = await this.#place(path);
    // A line more than is shown tells whether there is more.
    const asked: ReadTextFileRequest = { sessionId: this.#sessionId, path: file, line: offset, limit: limit + 1 };
    const content = await this.#text(asked, signal);
    const lines = content.split(/(?<=\n)/);
    let shown = '';
    let count = 0;
    for (const line of lines.slice(0, limit)) {
      if (jsonBytes(shown) + jsonBytes(line) > SHOWN_MAX_BYTES) break;
      shown += line;
      count += 1;
    }
    if (count === 0 && lines[0] !== undefined) shown = cutText(lines[0], SHOWN_MAX_BYTES / 8);
    const next = offset + Math.max(count, 1);
    const notes = lines.length > count ? [`[the file continues: read more with offset ${next}]`] : [];
    if (content === '') notes.push(`[the file ends before line ${offset}]`);
    return textResult([shown, ...notes], { path: this.shown(file), ...(notes.length ? { next_offset: next } : {}) });
  }

  /** Puts a text in the place of a file, or makes it. */
  async write(path: string, content: string, signal: AbortSignal): Promise<ToolResult> {
    const file = await this.#place(path);
    await this.#turns.run(file, () => this.#put(file, content, signal));
    const bytes = Buffer.byteLength(content);
    return textResult([`wrote ${this.shown(file)}, ${bytes} bytes`], { path: this.shown(file), bytes });
  }

  /** Puts a text at the end of a file, or makes it. */
  async append(path: string, content: string, signal: AbortSignal): Promise<ToolResult> {
    const file = await this.#place(path);
    await this.#turns.run(file, async () =>
      this.#put(file, `${(await this.#whole(file, signal)) ?? ''}${content}`, signal),
    );
    const bytes = Buffer.byteLength(content);
    return textResult([`added ${bytes} bytes to ${this.shown(file)}`], {
      path: this.shown(file),
      appended_bytes: bytes,
    });
  }

  /** Puts one text in the place of another, which stands in the file once, or as often as it likes where `all` is set. */
  async edit(path: string, change: TextChange, signal: AbortSignal): Promise<ToolResult> {
    const { oldText, newText, all } = change;
    if (oldText === newText) throw new Error('old_text and new_text are the same');
    const file = await this.#place(path);
    return this.#turns.run(file, async () => {
      const parts = (await this.#whole(file, signal))?.split(oldText);
      const name = this.shown(file);
      if (!parts) throw new Error(`there is no file ${name}`);
      const matches = parts.length - 1;
      if (matches === 0)
        throw new Error(`old_text does not occur in ${name}; read the file again and copy the text exactly`);
      if (matches > 1 && !all)
        throw new Error(
          `old_text occurs ${matches} times in ${name}; make it longer until it occurs once, or set replace_all`,
        );
      await this.#put(file, parts.join(newText), signal);
      return textResult([`replaced ${matches} in ${name}`], { path: name, replaced: matches });
    });
  }

  async #put(file: string, content: string, signal: AbortSignal): Promise<void> {
    const bytes = Buffer.byteLength(content);
    if (bytes > TOOL_BOUNDS.writeMaxBytes)
      throw new Error(`${bytes} bytes are too many; ${TOOL_BOUNDS.writeMaxBytes} can be written`);
    // What was cancelled while it was read, or while it waited for its turn, changes nothing.
    signal.throwIfAborted();
    const asked = { sessionId: this.#sessionId, path: file, content };
    await this.#client.request(methods.client.fs.writeTextFile, asked, until(signal));
  }

  async #text(asked: ReadTextFileRequest, signal: AbortSignal): Promise<string> {
    const answer: unknown = await this.#client.request(methods.client.fs.readTextFile, asked, until(signal));
    const { content } = (answer ?? {}) as { readonly content?: unknown };
    // Taken for an empty one, it would be written over.
    if (typeof content !== 'string') throw new Error(`the editor has given no text of ${this.shown(asked.path)}`);
    return content;
  }

  /** Null where there is no such file: neither the editor nor the disk has it. */
  async #whole(file: string, signal: AbortSignal): Promise<string | null> {
    signal.throwIfAborted();
    try {
      return await this.#text({ sessionId: this.#sessionId, path: file }, signal);
    } catch (error) {
      if (signal.aborted || (await exists(file))) throw error;
      return null;
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

/** An editor that does not answer holds up neither a call that is cancelled nor those behind it. */
function until(signal: AbortSignal): { readonly cancellationSignal: AbortSignal; readonly stopWaitingOnCancel: true } {
  return { cancellationSignal: signal, stopWaitingOnCancel: true };
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
