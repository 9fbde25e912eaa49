/** A list of lines with a limit in lines and in bytes. */
import { headWithin, jsonBytes } from './bounded-text.ts';

/** Collects lines until a limit is reached. */
export class BoundedLines {
  readonly #lines: string[] = [];
  readonly #maxLines: number;
  readonly #maxBytes: number;
  #bytes = 0;
  #full = false;

  constructor(maxLines: number, maxBytes: number) {
    this.#maxLines = maxLines;
    this.#maxBytes = maxBytes;
  }

  /** Adds a line. Returns false if it does not fit; later lines are rejected as well. */
  add(line: string): boolean {
    // A first line that is too long is cut, so that the result is not empty.
    const fitting = this.#lines.length === 0 ? headWithin(line, this.#maxBytes) : line;
    const bytes = jsonBytes(fitting) + NEWLINE_JSON_BYTES;
    if (
      this.#full ||
      this.#lines.length >= this.#maxLines ||
      this.#bytes + bytes > this.#maxBytes + NEWLINE_JSON_BYTES
    ) {
      this.#full = true;
      return false;
    }
    this.#lines.push(fitting);
    this.#bytes += bytes;
    return true;
  }

  get count(): number {
    return this.#lines.length;
  }

  get text(): string {
    return this.#lines.join('\n');
  }
}

const NEWLINE_JSON_BYTES = 2;
