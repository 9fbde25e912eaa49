import type { ServerResponse } from 'node:http';
import type { Principal } from '../auth/mod.ts';
import { GATEWAY_BOUNDS } from './gateway-bounds.ts';
import { MemoryShares } from './memory-shares.ts';
import { busyProblem } from './problem.ts';

/**
 * Responses that their clients have not read yet. Their memory is bounded, in total, for each tenant and for each
 * principal, and so is the time of each.
 */
export class UnreadResponses {
  readonly #memory: MemoryShares;
  readonly #withinMs: number;

  /**
   * @param maxBytes size of the responses; half of it for each tenant, and a quarter for each principal. The last one
   *   may exceed each.
   * @param withinMs time within which a client reads its response, in milliseconds.
   */
  constructor(maxBytes: number = GATEWAY_BOUNDS.unreadMaxBytes, withinMs: number = GATEWAY_BOUNDS.readWithinMs) {
    this.#memory = new MemoryShares(maxBytes);
    this.#withinMs = withinMs;
  }

  /**
   * Counts a response until its client has read it. Then, or after the time for it, its memory is released.
   * @throws Problem `gateway_busy` (503).
   */
  add(response: ServerResponse, bytes: number, principal: Principal): void {
    // The client has disconnected: there will be no further `close` event.
    if (response.destroyed) return;
    const share = this.#memory.take(bytes, principal);
    if (!share) throw busyProblem('too many responses have not been read by their clients');
    const late = setTimeout(() => response.destroy(), this.#withinMs).unref();
    response.once('close', () => {
      clearTimeout(late);
      share.release();
    });
  }
}
