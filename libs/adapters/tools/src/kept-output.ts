/** Keeps the beginning and the end of a command's output, in bounded memory. */

/** Keeps the first and the last bytes of a stream. */
export class KeptOutput {
  readonly #headMax: number;
  readonly #tailMax: number;
  #head: Buffer[] = [];
  #headBytes = 0;
  #tail: Buffer[] = [];
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
    const room = this.#headMax - this.#headBytes;
    const toHead = chunk.subarray(0, room);
    if (toHead.length > 0) {
      this.#head.push(toHead);
      this.#headBytes += toHead.length;
    }
    const toTail = chunk.subarray(toHead.length);
    if (toTail.length === 0) return;
    this.#tail.push(toTail);
    this.#tailBytes += toTail.length;
    // Joined only at twice the limit, so that many small chunks do not copy the tail each time.
    if (this.#tailBytes > 2 * this.#tailMax) this.#trim();
  }

  /** The beginning, the end, and the number of omitted bytes between them; 0 if head and tail are adjacent. */
  kept(): { readonly head: Buffer; readonly tail: Buffer; readonly dropped: number; readonly total: number } {
    this.#trim();
    return {
      head: Buffer.concat(this.#head),
      tail: Buffer.concat(this.#tail),
      dropped: this.#total - this.#headBytes - this.#tailBytes,
      total: this.#total,
    };
  }

  #trim(): void {
    if (this.#tailBytes <= this.#tailMax) return;
    const end = Buffer.concat(this.#tail).subarray(this.#tailBytes - this.#tailMax);
    // A copy, because a view would keep the original buffer in memory.
    this.#tail = [Buffer.from(end)];
    this.#tailBytes = end.length;
  }
}
