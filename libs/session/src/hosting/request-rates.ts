/** Rate limits of requests: one token bucket for each sender. The bucket unused for longest is forgotten first. */

/** One bucket for each sender, all with the same burst and rate. */
export class RequestRates {
  readonly #burst: number;
  readonly #perSecond: number;
  readonly #remembered: number;
  readonly #now: () => number;
  readonly #buckets = new Map<string, { left: number; at: number }>();

  /**
   * @param burst the requests that may come at once.
   * @param perSecond the sustained rate.
   * @param remembered the number of senders with their own bucket. Beyond it the bucket unused for longest is forgotten.
   * @param now the time in milliseconds, on a monotonic clock.
   */
  constructor(burst: number, perSecond: number, remembered: number, now: () => number) {
    this.#burst = burst;
    this.#perSecond = perSecond;
    this.#remembered = remembered;
    this.#now = now;
  }

  /** Counts one request. @returns 0 if it is accepted; otherwise the seconds until the next one is, rounded up. */
  take(sender: string): number {
    const now = this.#now();
    const known = this.#buckets.get(sender);
    const left = known
      ? Math.min(this.#burst, known.left + (Math.max(0, now - known.at) / 1_000) * this.#perSecond)
      : this.#burst;
    const taken = left >= 1;
    // The newest is last, so the first is unused for longest.
    this.#buckets.delete(sender);
    this.#buckets.set(sender, { left: taken ? left - 1 : left, at: now });
    if (this.#buckets.size > this.#remembered) {
      const [longest] = this.#buckets.keys();
      if (longest !== undefined) this.#buckets.delete(longest);
    }
    return taken ? 0 : Math.max(1, Math.ceil((1 - left) / this.#perSecond));
  }
}
