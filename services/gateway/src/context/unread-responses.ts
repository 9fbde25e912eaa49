import type { ServerResponse } from 'node:http';
import { GATEWAY_BOUNDS } from './gateway-bounds.ts';
import { Problem } from './problem.ts';

/** Responses that their clients have not read yet. Their memory is bounded, and the time of each. */
export class UnreadResponses {
  readonly #maxBytes: number;
  readonly #withinMs: number;
  #bytes = 0;

  /**
   * @param maxBytes size of the responses. The last one may exceed it.
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
  add(response: ServerResponse, bytes: number): void {
    // The client has disconnected: there will be no further `close` event.
    if (response.destroyed) return;
    if (this.#bytes >= this.#maxBytes)
      throw new Problem('gateway_busy', 'too many responses have not been read by their clients', {
        headers: { 'retry-after': '1' },
      });
    this.#bytes += bytes;
    const late = setTimeout(() => response.destroy(), this.#withinMs).unref();
    response.once('close', () => {
      clearTimeout(late);
      this.#bytes -= bytes;
    });
  }
}
