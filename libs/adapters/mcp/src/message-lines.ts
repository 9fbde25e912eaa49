/** Splits a stream of bytes into lines, in bounded memory. */

/** Splits incoming chunks into lines. */
export class MessageLines {
  readonly #maxBytes: number;
  #open: Buffer[] = [];
  #openBytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Adds a chunk and returns the lines that it completes. Throws a RangeError if a line exceeds the limit. */
  add(chunk: Buffer): string[] {
    const lines: string[] = [];
    let from = 0;
    for (let newline = chunk.indexOf(10); newline >= 0; newline = chunk.indexOf(10, from)) {
      this.#keep(chunk.subarray(from, newline));
      lines.push(Buffer.concat(this.#open).toString('utf8').replace(/\r$/, ''));
      this.#open = [];
      this.#openBytes = 0;
      from = newline + 1;
    }
    this.#keep(chunk.subarray(from));
    return lines;
  }

  #keep(part: Buffer): void {
    if (part.length === 0) return;
    this.#openBytes += part.length;
    if (this.#openBytes > this.#maxBytes) throw new RangeError(`a line of more than ${this.#maxBytes} bytes`);
    this.#open.push(part);
  }
}
