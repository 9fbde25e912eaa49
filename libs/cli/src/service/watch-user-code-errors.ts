/** Errors that user code throws outside of its calls, in a process that serves it. */

import { cutGraphemes } from '@coxswain/protocol';
import { CliError, EXIT } from '../line/mod.ts';

const TEXT_MAX_CHARS = 512;

/**
 * Watches for such errors until the process ends. An unhandled rejection is printed and does not stop the service.
 * After an uncaught exception the state of the process is undefined, so the process must end.
 * @param whose the owner of the code, for messages.
 * @returns the first uncaught exception. Never rejects.
 */
export function watchUserCodeErrors(whose: string): Promise<CliError> {
  const report = (what: string) => process.stderr.write(`${whose} ${what}\n`);
  process.on('unhandledRejection', (error) => report(`caused an unhandled rejection: ${errorText(error)}`));
  return new Promise((resolve) => {
    // Also handles exceptions while the process ends.
    process.on('uncaughtException', (error: unknown) => {
      const message = `tool_crashed: ${whose} caused an uncaught exception: ${errorText(error)}; the outcome of in-flight calls is unknown`;
      resolve(Object.assign(new CliError(EXIT.error, 'tool_crashed', message), { cause: error }));
    });
  });
}

// Any value can be thrown, even one that cannot be converted to a string.
function errorText(error: unknown): string {
  try {
    return cutGraphemes(String(error), TEXT_MAX_CHARS);
  } catch {
    return 'an error without text';
  }
}
