/** Explains what a key does not permit. */
import { isNotPermitted } from '@coxswain/client';
import { CliError, EXIT } from '../line/mod.ts';

/**
 * Runs a task on the bus.
 * @param what the forbidden operation, and whose key permits it: `import sessions: give the admin’s key`.
 * @throws CliError `not_permitted` if the bus does not permit the task; otherwise the error of the task.
 */
export async function withPermissionErrors<T>(what: string, task: () => Promise<T>): Promise<T> {
  try {
    return await task();
  } catch (error) {
    if ((error as { code?: unknown } | null)?.code !== 'not_permitted' && !isNotPermitted(error)) throw error;
    const message = `not_permitted: this key may not ${what} with --nkey or NATS_NKEY`;
    throw new CliError(EXIT.error, 'not_permitted', message);
  }
}
