/**
 * That a client closes, told to everything that it has open. It is no `AbortSignal`: a client has any number of loops and
 * requests open, and Node reports the eleventh listener of one signal as a leak.
 */
export class Closing {
  readonly #listeners = new Set<() => void>();
  #isClosed = false;

  /** Whether the client has closed. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Closes; a repetition does nothing. */
  close(): void {
    this.#isClosed = true;
    for (const end of [...this.#listeners]) end();
    this.#listeners.clear();
  }

  /** Has `end` called when the client closes: at once where it has closed already. @returns what calls that off. */
  onClose(end: () => void): () => void {
    if (this.#isClosed) end();
    else this.#listeners.add(end);
    return () => void this.#listeners.delete(end);
  }
}
