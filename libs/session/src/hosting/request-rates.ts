/** How many requests are taken: a bucket of tokens for each sender, the longest unused ones forgotten. */

/** Buckets of one kind. */
export class RequestRates {
  readonly #burst: number;
  readonly #perSecond: number;
  readonly #remembered: number;
  readonly #now: () => number;
  readonly #buckets = new Map<string, { left: number; at: number }>();

  /**
   * @param burst so many at once.
   * @param perSecond so many on end.
   * @param remembered senders that are told apart; beyond it the longest unused begins anew.
   */
  constructor(burst: number, perSecond: number, remembered: number, now: () => number) {
    this.#burst = burst;
    this.#perSecond = perSecond;
    this.#remembered = remembered;
    this.#now = now;
  }

  /** Takes one request. @returns 0, or after how many whole seconds the next one will be taken. */
  take(sender: string): number {
    const now = this.#now();
    const known = this.#buckets.get(sender);
    const left = known
      ? Math.min(this.#burst, known.left + (Math.max(0, now - known.at) / 1_000) * this.#perSecond)
      : this.#burst;
    const taken = left >= 1;
    // The newest at the end: whoever stands first has been unused for longest.
    this.#buckets.delete(sender);
    this.#buckets.set(sender, { left: taken ? left - 1 : left, at: now });
    if (this.#buckets.size > this.#remembered) {
      const [longest] = this.#buckets.keys();
      if (longest !== undefined) this.#buckets.delete(longest);
    }
    return taken ? 0 : Math.max(1, Math.ceil((1 - left) / this.#perSecond));
  }
}
