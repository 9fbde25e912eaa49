/** Files that are read and parsed once, and again when they have changed. */
import { stat } from 'node:fs/promises';
import type { Clock } from '@coxswain/ports';
import { readRegularFile, UnreadableFileError } from '@coxswain/ports/regular-file';
import { type Failure, utf8Of } from '@coxswain/protocol';
import type { FileReads } from './file-reads.ts';

const FILES_KEPT_MAX = 256;
/** Of the files themselves; what is parsed of them takes a few times as much memory. */
const BYTES_KEPT_MAX = 64 * 1024 * 1024;
// A session asks about its script before each answer; the disk is not asked that often.
const LOOK_AGAIN_MS = 250;

/** What a kind of file is parsed into, and what its trouble is called. */
export interface FileKind<T extends object> {
  readonly maxBytes: number;
  /**
   * Parses a file's text; `name` is what it is called in messages. A failure states places and never quotes the text: the
   * request that names a file may come from someone who may not read it.
   */
  parse(name: string, text: string): T | Failure | Promise<T | Failure>;
  /** The failure of a file that cannot be read. */
  unreadable(name: string, why: string): Failure;
}

/** What a file was parsed into, or why it was not. */
interface Read<T> {
  readonly outcome: T | Failure;
  /** Of the file that was opened; null where none was. */
  readonly realPath: string | null;
}

interface Kept<T> extends Read<T> {
  readonly outcome: T;
  readonly mtimeMs: number;
  readonly size: number;
  lookedAtMs: number;
}

/** Refuses a file by the real path of what was opened; null where it may be used. */
export type RefuseFile = (realPath: string) => Promise<Failure | null>;

/** Files of one kind by path, kept while they do not change. */
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

  /** A file that was read before, without a look at the disk: an instant answer must stay instant. */
  kept(path: string): T | undefined {
    return this.#kept.get(path)?.outcome;
  }

  /**
   * A file as it stands on the disk, give or take a quarter of a second. Never rejects.
   * @param refuse is asked about the file that was opened, also where it could not be parsed: its failure goes first.
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
    // The files that were read longest ago go first.
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
    // Reading it says why.
    return false;
  }
}
