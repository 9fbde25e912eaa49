/** Lines collected up to a bound of number and of bytes. */
import { headWithin, jsonBytes } from './bounded-text.ts';

/** Collects lines until a bound is reached. */
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

  /** Adds a line, or returns false: it does not fit, and from then on none does. */
  add(line: string): boolean {
    // A first line that is too long by itself is cut, because no line at all would say less.
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
