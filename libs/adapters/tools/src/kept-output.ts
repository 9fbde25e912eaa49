/** The output of a command as far as it is kept: its beginning and its end, in bounded memory. */

/** Keeps the first and the last bytes of a stream. */
export class KeptOutput {
  readonly #headMax: number;
  readonly #tailMax: number;
  #head: Buffer[] = [];
  #headBytes = 0;
  #tail: Buffer[] = [];
  #tailBytes = 0;
  #total = 0;

  /** How much is kept of the beginning, and how much of the end. */
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
    // Joined only at twice the bound, so that many small chunks do not copy the tail each time.
    if (this.#tailBytes > 2 * this.#tailMax) this.#trim();
  }

  /** The beginning, the end, and how many bytes between them are lost; 0 when head and tail join without a gap. */
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
    // A copy, because a view would keep the whole of what it was cut from.
    this.#tail = [Buffer.from(end)];
    this.#tailBytes = end.length;
  }
}
