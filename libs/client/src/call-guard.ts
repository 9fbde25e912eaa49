/**
 * The rules for every call of a client, over both transports:
 *
 * GUARD-1  Every rejection is a `CoxswainError`.
 * GUARD-2  Closing the client ends every loop and rejects every pending or later call, also while the transport waits.
 * GUARD-3  A call with a signal that is already aborted sends nothing.
 */
import { ClientClosedError, CoxswainError } from './client-errors.ts';
import type { Closing } from './closing.ts';
import { untilClosed } from './until-closed.ts';

/** Applies the rules at the top of the file. */
export class CallGuard {
  readonly closing: Closing;
  readonly #coded: (error: unknown) => CoxswainError | null;

  /** @param coded Converts an error of the transport's library; null for any other error. */
  constructor(closing: Closing, coded: (error: unknown) => CoxswainError | null = () => null) {
    this.closing = closing;
    this.#coded = coded;
  }

  /**
   * Runs one call.
   * @param run Receives a signal that aborts with `signal` and when the client closes. It must clear its timers then,
   *   because they keep the process alive.
   * @param signal The caller's signal. Its abort becomes the error `aborted`, with the signal's reason as `cause`.
   * @throws CoxswainError.
   */
  async call<T>(run: (stop: AbortSignal) => Promise<T>, signal?: AbortSignal): Promise<T> {
    const leaving = new AbortController();
    let withdraw: () => void = () => undefined;
    try {
      this.closing.throwIfClosed();
      signal?.throwIfAborted();
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
   * Runs a loop until the source ends or the client closes.
   * @param open Starts the source, which ends when `stop` aborts.
   * @throws CoxswainError; ClientClosedError on a closed client, without opening the source.
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

  /** Reads stored data to its end. @throws as {@link follow}; ClientClosedError if the client closes before the end. */
  async *read<T>(open: () => AsyncGenerator<T, void, undefined>): AsyncGenerator<T, void, undefined> {
    let isWhole = false;
    const whole = async function* () {
      yield* open();
      isWhole = true;
    };
    yield* this.follow(whole);
    // Part of a journal must not be mistaken for the whole.
    if (!isWhole) throw new ClientClosedError();
  }

  /** Converts an error to the one that the caller receives. */
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
