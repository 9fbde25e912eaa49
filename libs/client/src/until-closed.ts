/** Loops over what a client follows, which end when the client closes. */
import { setMaxListeners } from 'node:events';

/**
 * The items of a source until the client closes. The source may then wait for an answer that a closed connection never
 * gives: it is left, and not waited for.
 * @param open starts the source.
 * @param closing aborts when the client closes, with the error of a closed client.
 * @throws that error, and opens nothing, if the client is closed already: an empty loop would look like a journal that ended.
 */
export async function* untilClosed<T>(
  open: () => AsyncGenerator<T, void, undefined>,
  closing: AbortSignal,
): AsyncGenerator<T, void, undefined> {
  closing.throwIfAborted();
  // A client may follow any number of sessions at once; Node would warn of a leak from the eleventh on.
  setMaxListeners(0, closing);
  const items = open();
  try {
    for (;;) {
      const next = await unlessAborted(items.next(), closing);
      if (next === null || next.done) return;
      yield next.value;
    }
  } finally {
    const ended = items.return();
    if (closing.aborted) ended.catch(() => undefined);
    else await ended;
  }
}

/** Null once the signal aborts. `Promise.race` would keep every item for as long as the signal can abort. */
function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | null> {
  return new Promise((resolve, reject) => {
    const abort = () => resolve(null);
    const settled = () => signal.removeEventListener('abort', abort);
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) abort();
    work.then(resolve, reject).finally(settled);
  });
}
