/** Loops over what a client follows, which end when the client closes. */

/**
 * The items of a source until a signal aborts. The source may be waiting then for an answer that a closed connection never
 * gives: it is left, and not waited for.
 * @param open starts the source; not called where the signal has aborted already.
 */
export async function* untilClosed<T>(
  open: () => AsyncGenerator<T, void, undefined>,
  closing: AbortSignal,
): AsyncGenerator<T, void, undefined> {
  if (closing.aborted) return;
  let close: () => void = () => undefined;
  const closed = new Promise<'closed'>((resolve) => {
    close = () => resolve('closed');
  });
  closing.addEventListener('abort', close, { once: true });
  const items = open();
  try {
    for (;;) {
      const next = await Promise.race([items.next(), closed]);
      if (next === 'closed' || closing.aborted || next.done) return;
      yield next.value;
    }
  } finally {
    closing.removeEventListener('abort', close);
    const ended = items.return();
    if (closing.aborted) ended.catch(() => undefined);
    else await ended;
  }
}
