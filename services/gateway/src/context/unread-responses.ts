import type { ServerResponse } from 'node:http';
import type { Principal } from '../auth/mod.ts';
import { GATEWAY_BOUNDS } from './gateway-bounds.ts';
import { Problem } from './problem.ts';

/** The part of the memory that one principal may occupy. */
const SHARE = 1 / 4;

/**
 * Responses that their clients have not read yet. Their memory is bounded, in total and for each principal, and so is
 * the time of each.
 */
export class UnreadResponses {
  readonly #maxBytes: number;
  readonly #withinMs: number;
  #bytes = 0;
  /** The bytes of each principal with such a response. */
  readonly #byPrincipal = new Map<string, number>();

  /**
   * @param maxBytes size of the responses; a quarter of it for each principal. The last one may exceed it.
   * @param withinMs time within which a client reads its response, in milliseconds.
   */
  constructor(maxBytes: number = GATEWAY_BOUNDS.unreadMaxBytes, withinMs: number = GATEWAY_BOUNDS.readWithinMs) {
    this.#maxBytes = maxBytes;
    this.#withinMs = withinMs;
  }

  /**
   * Counts a response until its client has read it. Then, or after the time for it, its memory is released.
   * @throws Problem `gateway_busy` (503).
   */
  add(response: ServerResponse, bytes: number, { tenant, name }: Principal): void {
    // The client has disconnected: there will be no further `close` event.
    if (response.destroyed) return;
    const key = `${tenant}/${name}`;
    const ofPrincipal = () => this.#byPrincipal.get(key) ?? 0;
    if (this.#bytes >= this.#maxBytes || ofPrincipal() >= this.#maxBytes * SHARE)
      throw new Problem('gateway_busy', 'too many responses have not been read by their clients', {
        headers: { 'retry-after': '1' },
      });
    this.#bytes += bytes;
    this.#byPrincipal.set(key, ofPrincipal() + bytes);
    const late = setTimeout(() => response.destroy(), this.#withinMs).unref();
    response.once('close', () => {
      clearTimeout(late);
      this.#bytes -= bytes;
      this.#byPrincipal.set(key, ofPrincipal() - bytes);
      if (ofPrincipal() === 0) this.#byPrincipal.delete(key);
    });
  }
}
