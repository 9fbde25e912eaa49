/** A query that is repeated on request, and never overlaps itself. */

/** A repeated query. */
export interface RepeatedQuery {
  /** Asks after the pause. A request during a query leads to one more query after it. */
  request(): void;
  /** Starts no further query. */
  stop(): void;
}

/**
 * Runs a query in turn: a slow one delays the next. So an older answer replaces no newer one, and queries do not pile
 * up.
 * @param query Must not reject.
 * @param afterMs The pause before each query, in milliseconds: requests within it lead to one query.
 */
export function queryInTurn(query: () => Promise<void>, afterMs: number): RepeatedQuery {
  let pause: ReturnType<typeof setTimeout> | undefined;
  let isOpen = false;
  let isWanted = false;
  let isStopped = false;
  const request = () => {
    isWanted = true;
    if (isOpen || isStopped) return;
    pause ??= setTimeout(async () => {
      pause = undefined;
      isWanted = false;
      isOpen = true;
      await query();
      isOpen = false;
      if (isWanted) request();
    }, afterMs);
  };
  const stop = () => {
    isStopped = true;
    clearTimeout(pause);
  };
  return { request, stop };
}
