/**
 * The rules of every call of a client, over both transports:
 *
 * GUARD-1  Every rejection is a `CoxswainError`.
 * GUARD-2  Closing the client ends every loop, and rejects every pending call and every later one, at any moment, whatever the
 *          transport waits for.
 */
import { ClientClosedError, CoxswainError } from './client-errors.ts';
import type { Closing } from './closing.ts';
import { untilClosed } from './until-closed.ts';

/** Applies the rules at the top of the file. */
export class CallGuard {
  readonly closing: Closing;
  readonly #coded: (error: unknown) => CoxswainError | null;

  /** @param coded reads an error of the transport's library; null for any other. */
  constructor(closing: Closing, coded: (error: unknown) => CoxswainError | null = () => null) {
    this.closing = closing;
    this.#coded = coded;
  }

  /**
   * Runs one call.
   * @param run receives a signal that aborts with `signal` and when the client closes: a timer that it left behind would keep the
   *   process alive.
   * @param signal the caller's own: its abort is the error `aborted`, with the signal's reason as `cause`.
   * @throws CoxswainError.
   */
  async call<T>(run: (stop: AbortSignal) => Promise<T>, signal?: AbortSignal): Promise<T> {
    const leaving = new AbortController();
    let withdraw: () => void = () => undefined;
    try {
      this.closing.throwIfClosed();
      const closed = new Promise<never>((_, reject) => {
        withdraw = this.closing.onClose(() => {
          const error = new ClientClosedError();
          reject(error);
          leaving.abort(error);
        });
      });
      return await Promise.race([run(signal ? AbortSignal.any([signal, leaving.signal]) : leaving.signal), closed]);
    } catch (error) {
      throw this.errorOf(error, signal);
    } finally {
      withdraw();
    }
  }

  /**
   * Runs a loop that lasts until the client closes.
   * @param open starts the source, which ends when `stop` aborts.
   * @throws CoxswainError; ClientClosedError, without opening anything, on a closed client.
   */
  async *follow<T>(
    open: (stop: AbortSignal) => AsyncGenerator<T, void, undefined>,
    signal?: AbortSignal,
  ): AsyncGenerator<T, void, undefined> {
    try {
      yield* untilClosed(open, this.closing, signal);
    } catch (error) {
      throw this.errorOf(error, signal);
    }
  }

  /** Reads what is stored, to its end. @throws as {@link follow}; ClientClosedError where the client closes before the end. */
  async *read<T>(open: () => AsyncGenerator<T, void, undefined>): AsyncGenerator<T, void, undefined> {
    let isWhole = false;
    const whole = async function* () {
      yield* open();
      isWhole = true;
    };
    yield* this.follow(whole);
    // A part of a journal must not look like the whole.
    if (!isWhole) throw new ClientClosedError();
  }

  /** An error as the caller receives it. */
  errorOf(error: unknown, signal?: AbortSignal): CoxswainError {
    if (error instanceof CoxswainError) return error;
    if (this.closing.isClosed) return new ClientClosedError();
    if (signal?.aborted) return new CoxswainError('aborted', 'the caller aborted the call', { cause: signal.reason });
    const coded = this.#coded(error);
    if (coded) return coded;
    const message = error instanceof Error ? error.message : String(error);
    return new CoxswainError('internal', message, { cause: error });
  }
}
