import { ClientError } from './client-errors.ts';

/**
 * That a client closes, told to everything that it has open. It is no `AbortSignal`: a client has any number of loops and
 * requests open, and Node reports the eleventh listener of one signal as a leak.
 */
export class Closing {
  readonly #listeners = new Set<() => void>();
  readonly #code: 'nats_unreachable' | 'gateway_unreachable';
  #isClosed = false;

  /** @param code of the error that calls on the closed client get. */
  constructor(code: 'nats_unreachable' | 'gateway_unreachable') {
    this.#code = code;
  }

  /** Whether the client has closed. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** @throws ClientError where the client has closed. */
  throwIfClosed(): void {
    if (this.#isClosed) throw new ClientError(this.#code, 'the client was closed');
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
