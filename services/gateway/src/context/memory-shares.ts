/** Memory that requests occupy, counted in total, for each tenant and for each principal. */
import type { Principal } from '../auth/mod.ts';

/** The parts of the memory that one tenant, and one principal, may occupy: a tenant may have any number of tokens. */
const TENANT_SHARE = 1 / 2;
const PRINCIPAL_SHARE = 1 / 4;

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
  /** The bytes of each tenant and of each principal (`TENANT/NAME`) that occupies memory. */
  readonly #byHolder = new Map<string, number>();

  /**
   * @param maxBytes the memory in bytes; half of it for each tenant, and a quarter for each principal. The last part
   *   may exceed each.
   */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Counts memory. @returns null if there is no room. */
  take(bytes: number, { tenant, name }: Principal): MemoryShare | null {
    const holder = `${tenant}/${name}`;
    const isFull =
      this.#bytes >= this.#maxBytes ||
      this.#bytesOf(tenant) >= this.#maxBytes * TENANT_SHARE ||
      this.#bytesOf(holder) >= this.#maxBytes * PRINCIPAL_SHARE;
    if (isFull) return null;
    let held = 0;
    const hold = (next: number) => {
      this.#bytes += next - held;
      for (const one of [tenant, holder]) {
        const bytesOf = this.#bytesOf(one) + next - held;
        if (bytesOf === 0) this.#byHolder.delete(one);
        else this.#byHolder.set(one, bytesOf);
      }
      held = next;
    };
    hold(bytes);
    return { shrink: (to) => hold(Math.min(to, held)), release: () => hold(0) };
  }

  #bytesOf(holder: string): number {
    return this.#byHolder.get(holder) ?? 0;
  }
}
