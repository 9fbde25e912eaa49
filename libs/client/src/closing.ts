import { ClientClosedError } from './client-errors.ts';

/**
 * Notifies everything that a client has open when the client closes. It is not an `AbortSignal`: a client has any number of loops and
 * requests open, and Node reports the eleventh listener of one signal as a leak.
 */
export class Closing {
  readonly #listeners = new Set<() => void>();
  #isClosed = false;

  /** Whether the client has closed. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** @throws ClientClosedError where the client has closed. */
  throwIfClosed(): void {
    if (this.#isClosed) throw new ClientClosedError();
  }

  /** Closes; a repetition does nothing. */
  close(): void {
    this.#isClosed = true;
    for (const end of [...this.#listeners]) end();
    this.#listeners.clear();
  }

  /** Calls `end` when the client closes: at once where it has closed already. @returns a function that withdraws it. */
  onClose(end: () => void): () => void {
    if (this.#isClosed) end();
    else this.#listeners.add(end);
    return () => void this.#listeners.delete(end);
  }
}
