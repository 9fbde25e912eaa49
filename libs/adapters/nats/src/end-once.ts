/** An end that comes once, however often it is asked for: every asking waits for the same one. */
export function endOnce(end: () => Promise<void>): () => Promise<void> {
  let ending: Promise<void> | undefined;
  return () => {
    ending ??= end();
    return ending;
  };
}
