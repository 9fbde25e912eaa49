/** Waits for a stop: the signals SIGINT, SIGTERM and SIGHUP, or an abort signal. */

/**
 * `promise` resolves and `signal` aborts at the first stop signal. A second one ends the process at once. `release` restores
 * the default handling.
 */
export function stopSignal(): { readonly promise: Promise<undefined>; readonly signal: AbortSignal; release(): void } {
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  const stopping = new AbortController();
  let stop: () => void = () => undefined;
  const promise = new Promise<undefined>((resolve) => {
    stop = () => {
      release();
      stopping.abort();
      resolve(undefined);
    };
  });
  const release = () => {
    for (const signal of signals) process.off(signal, stop);
  };
  for (const signal of signals) process.on(signal, stop);
  return { promise, signal: stopping.signal, release };
}

/** Resolves when the signal aborts; at once if it already has. */
export function untilAborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener('abort', () => resolve(undefined), { once: true });
  });
}
