import { ClientClosedError } from './client-errors.ts';

/**
 * Notifies the open loops and requests of a client when it closes. It is not an `AbortSignal`: Node reports the
 * eleventh listener of one signal as a leak, and a client can have any number of them open.
 */
export class Closing {
  readonly #listeners = new Set<() => void>();
  #isClosed = false;

  /** Whether the client has closed. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** @throws ClientClosedError if the client has closed. */
  throwIfClosed(): void {
    if (this.#isClosed) throw new ClientClosedError();
  }

  /** Closes the client; repeating it does nothing. */
  close(): void {
    this.#isClosed = true;
    for (const end of [...this.#listeners]) end();
    this.#listeners.clear();
  }

  /** Calls `end` when the client closes, or at once if it has closed. @returns a function that removes the listener. */
  onClose(end: () => void): () => void {
    if (this.#isClosed) end();
    else this.#listeners.add(end);
    return () => void this.#listeners.delete(end);
  }
}
