/** Files that are read and parsed once, and again when they have changed. */
import { readFile, stat } from 'node:fs/promises';
import type { Clock } from '@coxswain/ports';
import type { Failure } from '@coxswain/protocol';

const FILES_KEPT_MAX = 256;
// A session asks about its script before each answer; the disk is not asked that often.
const LOOK_AGAIN_MS = 250;

/** What a kind of file is parsed into, and what its trouble is called. */
export interface FileKind<T extends object> {
  readonly maxBytes: number;
  /** Parses a file's text; `name` is what it is called in messages. */
  parse(name: string, text: string): T | Failure;
  /** The failure of a file that cannot be read. */
  unreadable(name: string, why: string): Failure;
}

interface Kept<T> {
  readonly parsed: T;
  readonly mtimeMs: number;
  readonly size: number;
  lookedAtMs: number;
}

/** See above. */
export class KeptFiles<T extends object> {
  readonly #kind: FileKind<T>;
  readonly #clock: Clock;
  readonly #kept = new Map<string, Kept<T>>();

  constructor(kind: FileKind<T>, clock: Clock) {
    this.#kind = kind;
    this.#clock = clock;
  }

  /** A file that was read before, without a look at the disk: an instant answer must stay instant. */
  kept(path: string): T | undefined {
    return this.#kept.get(path)?.parsed;
  }

  /** A file as it stands on the disk, give or take a quarter of a second. Never rejects. */
  async load(path: string, name: string): Promise<T | Failure> {
    const kept = this.#kept.get(path);
    const nowMs = this.#clock.monotonicMs();
    if (kept && nowMs - kept.lookedAtMs < LOOK_AGAIN_MS) return kept.parsed;
    try {
      const { mtimeMs, size } = await stat(path);
      if (kept && kept.mtimeMs === mtimeMs && kept.size === size) {
        kept.lookedAtMs = nowMs;
        return kept.parsed;
      }
      const { maxBytes } = this.#kind;
      if (size > maxBytes) return this.#kind.unreadable(name, `it has ${size} bytes, ${maxBytes} are allowed`);
      const parsed = this.#kind.parse(name, await readFile(path, 'utf8'));
      if ('code' in parsed) return parsed;
      if (this.#kept.size >= FILES_KEPT_MAX) this.#kept.clear();
      this.#kept.set(path, { parsed, mtimeMs, size, lookedAtMs: nowMs });
      return parsed;
    } catch (error) {
      return this.#kind.unreadable(name, `it cannot be read: ${(error as Error).message}`);
    }
  }
}
