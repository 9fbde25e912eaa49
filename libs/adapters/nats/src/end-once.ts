/** Wraps a shutdown function so that it runs once. All calls return the same promise. */
export function endOnce(end: () => Promise<void>): () => Promise<void> {
  let ending: Promise<void> | undefined;
  return () => {
    ending ??= end();
    return ending;
  };
}
