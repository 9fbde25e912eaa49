/**
 * Combines the steps of a shutdown to a function that runs them once, in order. A failed step does not keep the later
 * ones from running. All calls return the same promise, which rejects with the first failure.
 */
export function endOnce(...steps: readonly (() => unknown)[]): () => Promise<void> {
  let ending: Promise<void> | undefined;
  return () => {
    ending ??= endInOrder(steps);
    return ending;
  };
}

async function endInOrder(steps: readonly (() => unknown)[]): Promise<void> {
  const failures: unknown[] = [];
  for (const step of steps) {
    try {
      await step();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}

/** Waits until all have ended, also after a failure. @throws the first failure. */
export async function endTogether(ends: readonly Promise<unknown>[]): Promise<void> {
  for (const end of await Promise.allSettled(ends)) if (end.status === 'rejected') throw end.reason;
}
