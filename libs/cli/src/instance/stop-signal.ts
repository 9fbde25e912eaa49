/** Being told to stop: SIGINT, SIGTERM or SIGHUP. */

/** Resolves at the first such signal. A second one ends the process at once. */
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
