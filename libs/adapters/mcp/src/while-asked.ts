/**
 * Makes one request under a signal that follows another only until the request has ended. The client goes on listening to
 * a request's signal after its answer, and would tell the server to cancel what it has long answered.
 */
export async function whileAsked<T>(signal: AbortSignal, ask: (own: AbortSignal) => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  const own = new AbortController();
  const ended = new AbortController();
  signal.addEventListener('abort', () => own.abort(signal.reason), { once: true, signal: ended.signal });
  try {
    return await ask(own.signal);
  } finally {
    ended.abort();
  }
}
