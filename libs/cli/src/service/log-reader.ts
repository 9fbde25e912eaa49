/** Reads the lines of a log that is rotated at a size limit: `<path>.1`, then `<path>`. */
import { type FileHandle, open, readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { printable } from '@coxswain/client';

const POLL_MS = 250;
const CHUNK_BYTES = 64 * 1024;
/** A longer line, in characters, is printed in parts. */
const LINE_MAX_CHARS = 1024 * 1024;

/** Reads one log. Call `last` first, then `follow`. */
export class LogReader {
  readonly #path: string;
  #file: FileHandle | null = null;
  #at = 0;
  #part = '';
  /** Keeps the first bytes of a character until its other bytes are written. */
  #decoder = new TextDecoder();

  constructor(path: string) {
    this.#path = path;
  }

  /** The last lines, oldest first; null if there is no log. */
  async last(limit: number): Promise<readonly string[] | null> {
    this.#file = await opened(this.#path);
    const now = this.#file ? await this.#rest() : [];
    const before = now.length < limit ? await textOf(`${this.#path}.1`) : null;
    if (this.#file === null && before === null) return null;
    const lines = [...(before ?? '').split('\n').filter((line) => line !== ''), ...now];
    return limit === 0 ? [] : lines.slice(-limit);
  }

  /** New lines until the signal aborts. */
  async *follow(signal: AbortSignal): AsyncGenerator<readonly string[]> {
    while (!signal.aborted) {
      const lines = await this.#rest();
      if (lines.length > 0) yield lines;
      if (await this.#isSetAside()) {
        // Lines that were written between the last read and the rotation.
        const missed = await this.#rest();
        if (missed.length > 0) yield missed;
        await this.close();
        this.#file = await opened(this.#path);
        continue;
      }
      if (await this.#isCut()) this.#restart();
      await sleep(POLL_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  async close(): Promise<void> {
    await this.#file?.close();
    this.#file = null;
    this.#restart();
  }

  #restart(): void {
    this.#at = 0;
    this.#part = '';
    this.#decoder = new TextDecoder();
  }

  /** Whether the file was emptied in place, as `> up.log` does. */
  async #isCut(): Promise<boolean> {
    return this.#file !== null && (await this.#file.stat()).size < this.#at;
  }

  async #isSetAside(): Promise<boolean> {
    const now = await opened(this.#path);
    if (now === null) return false;
    try {
      return this.#file === null || (await now.stat()).ino !== (await this.#file.stat()).ino;
    } finally {
      await now.close();
    }
  }

  /** The complete lines from the current position to the end of the file. */
  async #rest(): Promise<string[]> {
    const lines: string[] = [];
    if (!this.#file) return lines;
    const chunk = Buffer.alloc(CHUNK_BYTES);
    for (;;) {
      const { bytesRead } = await this.#file.read(chunk, 0, CHUNK_BYTES, this.#at);
      if (bytesRead === 0) return lines;
      this.#at += bytesRead;
      this.#part += this.#decoder.decode(chunk.subarray(0, bytesRead), { stream: true });
      const whole = this.#part.split('\n');
      this.#part = whole.pop() as string;
      lines.push(...whole.filter((line) => line !== ''));
      if (this.#part.length > LINE_MAX_CHARS) {
        lines.push(this.#part);
        this.#part = '';
      }
    }
  }
}

async function opened(path: string): Promise<FileHandle | null> {
  return open(path, 'r').catch(orNull);
}

async function textOf(path: string): Promise<string | null> {
  return readFile(path, 'utf8').catch(orNull);
}

function orNull(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null;
  throw error;
}

const LEVELS: Readonly<Record<number, string>> = {
  10: 'trace',
  20: 'debug',
  30: 'info',
  40: 'warn',
  50: 'error',
  60: 'fatal',
};
/** Members that are printed first, and two that are left out: `pid` and `hostname`. */
const SHOWN_APART: ReadonlySet<string> = new Set(['time', 'level', 'name', 'msg', 'pid', 'hostname']);

/** Formats a log line as text: time, level, service, message, then the other members as `key=value`. */
export function logLineText(line: string): string {
  const entry = parsed(line);
  if (entry === null) return printable(line);
  const { time, level, name, msg } = entry;
  const at = typeof time === 'number' ? new Date(time).toISOString() : '';
  const rest = Object.entries(entry)
    .filter(([key]) => !SHOWN_APART.has(key))
    .map(([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`);
  const parts = [at, LEVELS[level as number] ?? String(level ?? ''), name, msg, ...rest];
  return printable(parts.filter((part) => part !== undefined && part !== '').join(' ')).replaceAll('\n', ' ⏎ ');
}

function parsed(line: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}
