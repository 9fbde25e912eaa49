/**
 * Rate limits: a token bucket for each sender. The least recently used ones are forgotten.
 */

/** Token buckets of one kind. */
export class RequestRates {
  readonly #burst: number;
  readonly #perSecond: number;
  readonly #remembered: number;
  readonly #now: () => number;
  readonly #buckets = new Map<string, { left: number; at: number }>();

  /**
   * @param burst size of a bucket.
   * @param perSecond refill rate.
   * @param remembered maximum of senders. Beyond it the least recently used one starts with a full bucket.
   */
  constructor(burst: number, perSecond: number, remembered: number, now: () => number) {
    this.#burst = burst;
    this.#perSecond = perSecond;
    this.#remembered = remembered;
    this.#now = now;
  }

  /** Takes one request. @returns 0, or the whole seconds until the next one is accepted. */
  take(sender: string): number {
    const now = this.#now();
    const known = this.#buckets.get(sender);
    const left = known
      ? Math.min(this.#burst, known.left + (Math.max(0, now - known.at) / 1_000) * this.#perSecond)
      : this.#burst;
    const taken = left >= 1;
    // Moves the bucket to the end: the first one is the least recently used.
    this.#buckets.delete(sender);
    this.#buckets.set(sender, { left: taken ? left - 1 : left, at: now });
    if (this.#buckets.size > this.#remembered) {
      const [longest] = this.#buckets.keys();
      if (longest !== undefined) this.#buckets.delete(longest);
    }
    return taken ? 0 : Math.max(1, Math.ceil((1 - left) / this.#perSecond));
  }
}
