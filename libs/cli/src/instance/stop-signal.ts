/** Stop signals: SIGINT, SIGTERM and SIGHUP. */

/**
 * Resolves at the first stop signal. A second one ends the process at once. `release` restores the default handling.
 */
export function stopSignal(): { readonly promise: Promise<undefined>; release(): void } {
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  let stop: () => void = () => undefined;
  const promise = new Promise<undefined>((resolve) => {
    stop = () => {
      release();
      resolve(undefined);
    };
  });
  const release = () => {
    for (const signal of signals) process.off(signal, stop);
  };
  for (const signal of signals) process.on(signal, stop);
  return { promise, release };
}
