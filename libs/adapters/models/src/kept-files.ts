/** A cache of parsed files. A file is read again after a change. */
import { stat } from 'node:fs/promises';
import type { Clock } from '@coxswain/ports';
import { readRegularFile, UnreadableFileError } from '@coxswain/ports/regular-file';
import { type Failure, utf8Of } from '@coxswain/protocol';
import type { FileReads } from './file-reads.ts';

const FILES_KEPT_MAX = 256;
/** The size of the files in bytes. The parsed values take a few times as much memory. */
const BYTES_KEPT_MAX = 64 * 1024 * 1024;
// A session needs its script before each answer; the disk is checked less often.
const LOOK_AGAIN_MS = 250;

/** How files of one kind are parsed, and how their failures are described. */
export interface FileKind<T extends object> {
  readonly maxBytes: number;
  /**
   * Parses a file's text. `name` is the file's name in messages. A failure states places and does not quote the text: a
   * request may name a file that its sender may not read.
   */
  parse(name: string, text: string): T | Failure | Promise<T | Failure>;
  /** Creates the failure for a file that cannot be read. */
  unreadable(name: string, why: string): Failure;
}

/** The parsed file, or the reason why it was not parsed. */
interface Read<T> {
  readonly outcome: T | Failure;
  /** The path of the opened file; null if no file was opened. */
  readonly realPath: string | null;
}

interface Kept<T> extends Read<T> {
  readonly outcome: T;
  readonly mtimeMs: number;
  readonly size: number;
  lookedAtMs: number;
}

/** Decides by the real path of an opened file whether it may be used; null if it may. */
export type RefuseFile = (realPath: string) => Promise<Failure | null>;

/** A cache of files of one kind by path, as long as they do not change. */
export class KeptFiles<T extends object> {
  readonly #kind: FileKind<T>;
  readonly #clock: Clock;
  readonly #reads: FileReads;
  readonly #kept = new Map<string, Kept<T>>();
  #keptBytes = 0;
  readonly #reading = new Map<string, Promise<Read<T>>>();

  constructor(kind: FileKind<T>, clock: Clock, reads: FileReads) {
    this.#kind = kind;
    this.#clock = clock;
    this.#reads = reads;
  }

  /** A cached file, without access to the disk, so that an immediate answer stays immediate. */
  kept(path: string): T | undefined {
    return this.#kept.get(path)?.outcome;
  }

  /**
   * Loads a file. The result is at most about 250 ms old. Never rejects.
   * @param refuse checks the opened file, even if it could not be parsed. Its failure takes precedence.
   */
  async load(path: string, name: string, refuse?: RefuseFile): Promise<T | Failure> {
    const { outcome, realPath } = await this.#newest(path, name);
    const refused = realPath === null ? null : await refuse?.(realPath);
    return refused ?? outcome;
  }

  #newest(path: string, name: string): Read<T> | Promise<Read<T>> {
    const kept = this.#kept.get(path);
    if (kept && this.#clock.monotonicMs() - kept.lookedAtMs < LOOK_AGAIN_MS) return kept;
    let reading = this.#reading.get(path);
    if (!reading) {
      reading = this.#reads
        .run(() => this.#read(path, name))
        .catch((error: unknown): Read<T> => {
          if (!(error instanceof UnreadableFileError)) throw error;
          return { outcome: this.#kind.unreadable(name, `the file ${error.message}`), realPath: null };
        })
        .finally(() => this.#reading.delete(path));
      this.#reading.set(path, reading);
    }
    return reading;
  }

  async #read(path: string, name: string): Promise<Read<T>> {
    const kept = this.#kept.get(path);
    const lookedAtMs = this.#clock.monotonicMs();
    if (kept && (await isUnchanged(path, kept))) {
      kept.lookedAtMs = lookedAtMs;
      return kept;
    }
    const { bytes, mtimeMs, realPath } = await readRegularFile(path, this.#kind.maxBytes);
    const text = utf8Of(bytes);
    if (text === null) return { outcome: this.#kind.unreadable(name, 'the file is not UTF-8 text'), realPath };
    const outcome = await this.#kind.parse(name, text);
    if ('code' in outcome) return { outcome, realPath };
    const read = { outcome, mtimeMs, realPath, size: bytes.length, lookedAtMs };
    this.#keep(path, read);
    return read;
  }

  #keep(path: string, kept: Kept<T>): void {
    this.#keptBytes += kept.size - (this.#kept.get(path)?.size ?? 0);
    this.#kept.delete(path);
    // The files that were read the longest time ago are removed first.
    for (const [oldest, { size }] of this.#kept) {
      if (this.#kept.size < FILES_KEPT_MAX && this.#keptBytes <= BYTES_KEPT_MAX) break;
      this.#kept.delete(oldest);
      this.#keptBytes -= size;
    }
    this.#kept.set(path, kept);
  }
}

async function isUnchanged(path: string, kept: Pick<Kept<unknown>, 'mtimeMs' | 'size'>): Promise<boolean> {
  try {
    const { mtimeMs, size } = await stat(path);
    return mtimeMs === kept.mtimeMs && size === kept.size;
  } catch {
    // The read reports the reason.
    return false;
  }
}
