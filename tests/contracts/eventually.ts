import { CoxswainError } from '@coxswain/protocol';

/**
 * Waits until a condition is true, for at most 60 seconds. A bus that is unavailable meanwhile counts as not yet: a disk that
 * stalls for four seconds ends a connection.
 */
export async function eventually(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 60_000;
  let unavailable: unknown;
  const holds = async () => {
    try {
      return await condition();
    } catch (error) {
      if (!(error instanceof CoxswainError && error.code === 'nats_unreachable')) throw error;
      unavailable = error;
      return false;
    }
  };
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`never came true: ${what}`, { cause: unavailable });
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
