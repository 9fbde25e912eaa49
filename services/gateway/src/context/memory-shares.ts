/** Memory that requests occupy, counted in total and for each principal. */
import type { Principal } from '../auth/mod.ts';

/** The part of the memory that one principal may occupy. */
const SHARE = 1 / 4;

/** Counts memory until it is released, and limits it. */
export class MemoryShares {
  readonly #maxBytes: number;
  #bytes = 0;
  /** The bytes of each principal that occupies memory. */
  readonly #byPrincipal = new Map<string, number>();

  /** @param maxBytes the memory in bytes; a quarter of it for each principal. The last part may exceed it. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /**
   * Counts memory.
   * @returns a function that releases it; further calls change nothing. Null if there is no room.
   */
  take(bytes: number, { tenant, name }: Principal): (() => void) | null {
    const key = `${tenant}/${name}`;
    const ofPrincipal = () => this.#byPrincipal.get(key) ?? 0;
    if (this.#bytes >= this.#maxBytes || ofPrincipal() >= this.#maxBytes * SHARE) return null;
    this.#bytes += bytes;
    this.#byPrincipal.set(key, ofPrincipal() + bytes);
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#bytes -= bytes;
      this.#byPrincipal.set(key, ofPrincipal() - bytes);
      if (ofPrincipal() === 0) this.#byPrincipal.delete(key);
    };
  }
}
