/** Loops that end when the client closes. */
import type { Closing } from './closing.ts';

/**
 * The items of a source until the client closes. The source may then wait for a response that a closed connection does
 * not deliver, so it is abandoned without waiting for it.
 * @param open Starts the source, which ends when `stop` aborts.
 * @param signal Also ends the source.
 * @throws CoxswainError, without opening the source, if the client is closed: an empty loop would look like the end of
 *   a journal.
 */
export async function* untilClosed<T>(
  open: (stop: AbortSignal) => AsyncGenerator<T, void, undefined>,
  closing: Closing,
  signal?: AbortSignal,
): AsyncGenerator<T, void, undefined> {
  closing.throwIfClosed();
  const leaving = new AbortController();
  let wake: () => void = () => undefined;
  const callOff = closing.onClose(() => {
    leaving.abort();
    wake();
  });
  const items = open(signal ? AbortSignal.any([signal, leaving.signal]) : leaving.signal);
  try {
    while (!closing.isClosed) {
      // Not a race with one promise for all items: that would keep every item in memory as long as the loop lasts.
      const next = await new Promise<IteratorResult<T, void> | null>((resolve, reject) => {
        wake = () => resolve(null);
        items.next().then(resolve, reject);
      });
      if (next === null || closing.isClosed || next.done) return;
      yield next.value;
    }
  } finally {
    const ended = items.return();
    await new Promise<void>((resolve, reject) => {
      wake = resolve;
      ended.then(() => resolve(), reject);
      if (closing.isClosed) resolve();
    });
    callOff();
  }
}
