/** Keeps the beginning and the end of a command's output, in bounded memory. */

/**
 * Keeps the first and the last bytes of a stream. They are copied into two buffers: a list of chunks would take hundreds
 * of times their bytes if a command writes its output byte by byte.
 */
export class KeptOutput {
  readonly #headMax: number;
  readonly #tailMax: number;
  /** Grows by doubling: most outputs are short. */
  #head = EMPTY;
  #headBytes = 0;
  /** Twice the limit, so that the end is moved to the front only once per limit. */
  #tail = EMPTY;
  #tailBytes = 0;
  #total = 0;

  /**
   * @param headMaxBytes the size of the beginning.
   * @param tailMaxBytes the size of the end.
   */
  constructor(headMaxBytes: number, tailMaxBytes: number) {
    this.#headMax = headMaxBytes;
    this.#tailMax = tailMaxBytes;
  }

  add(chunk: Buffer): void {
    this.#total += chunk.length;
    const toHead = chunk.subarray(0, this.#headMax - this.#headBytes);
    if (toHead.length > 0) this.#addToHead(toHead);
    const toTail = chunk.subarray(toHead.length);
    if (toTail.length > 0) this.#addToTail(toTail.subarray(-this.#tailMax));
  }

  /** The beginning, the end, and the number of omitted bytes between them; 0 if head and tail are adjacent. */
  kept(): { readonly head: Buffer; readonly tail: Buffer; readonly dropped: number; readonly total: number } {
    const tail = this.#tail.subarray(Math.max(0, this.#tailBytes - this.#tailMax), this.#tailBytes);
    return {
      head: this.#head.subarray(0, this.#headBytes),
      tail,
      dropped: this.#total - this.#headBytes - tail.length,
      total: this.#total,
    };
  }

  #addToHead(bytes: Buffer): void {
    const size = this.#headBytes + bytes.length;
    if (size > this.#head.length) {
      const grown = Buffer.alloc(Math.min(this.#headMax, Math.max(size, 2 * this.#head.length)));
      this.#head.copy(grown);
      this.#head = grown;
    }
    bytes.copy(this.#head, this.#headBytes);
    this.#headBytes = size;
  }

  #addToTail(bytes: Buffer): void {
    if (this.#tail.length === 0) this.#tail = Buffer.alloc(2 * this.#tailMax);
    if (this.#tailBytes + bytes.length > this.#tail.length) {
      this.#tail.copyWithin(0, this.#tailBytes - this.#tailMax, this.#tailBytes);
      this.#tailBytes = this.#tailMax;
    }
    bytes.copy(this.#tail, this.#tailBytes);
    this.#tailBytes += bytes.length;
  }
}

const EMPTY = Buffer.alloc(0);
