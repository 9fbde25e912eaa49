/** Memory that requests occupy, counted in total and for each principal. */
import type { Principal } from '../auth/mod.ts';

/** The part of the memory that one principal may occupy. */
const SHARE = 1 / 4;

/** Memory that is counted until it is released. */
export interface MemoryShare {
  /** Releases all but a number of bytes. */
  shrink(toBytes: number): void;
  /** Releases all of it. Further calls change nothing. */
  release(): void;
}

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

  /** Counts memory. @returns null if there is no room. */
  take(bytes: number, { tenant, name }: Principal): MemoryShare | null {
    const key = `${tenant}/${name}`;
    const ofPrincipal = () => this.#byPrincipal.get(key) ?? 0;
    if (this.#bytes >= this.#maxBytes || ofPrincipal() >= this.#maxBytes * SHARE) return null;
    let held = 0;
    const hold = (next: number) => {
      this.#bytes += next - held;
      this.#byPrincipal.set(key, ofPrincipal() + next - held);
      if (ofPrincipal() === 0) this.#byPrincipal.delete(key);
      held = next;
    };
    hold(bytes);
    return { shrink: (to) => hold(Math.min(to, held)), release: () => hold(0) };
  }
}
