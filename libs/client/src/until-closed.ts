/** Loops over what a client follows, which end when the client closes. */
import type { Closing } from './closing.ts';

/**
 * The items of a source until the client closes. The source may then wait for an answer that a closed connection never
 * gives: it is left, and not waited for.
 * @param open starts the source, which ends when `stop` aborts.
 * @param signal ends the source, too.
 * @throws CoxswainError, and opens nothing, if the client is closed already: an empty loop would look like a journal that ended.
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
      // No race with one promise for all items: that would keep every item for as long as the loop lasts.
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
