/** What a key does not allow, in words for whoever has given it. */
import { isNotPermitted } from '@coxswain/client';
import { CliError, EXIT } from '../line/cli-error.ts';

/**
 * Does a task on the bus.
 * @param what what this user may not, and whose key may: `import sessions: give the admin’s key`.
 * @throws CliError `not_permitted` where the bus does not let this user do it; else what the task throws.
 */
export async function permittedTo<T>(what: string, task: () => Promise<T>): Promise<T> {
  try {
    return await task();
  } catch (error) {
    if ((error as { code?: unknown } | null)?.code !== 'not_permitted' && !isNotPermitted(error)) throw error;
    const message = `not_permitted: this key may not ${what} with --nkey or NATS_NKEY`;
    throw new CliError(EXIT.error, 'not_permitted', message);
  }
}
