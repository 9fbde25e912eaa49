/** What somebody's code throws outside of its calls, in a process that serves it. */

import { cutGraphemes } from '@coxswain/protocol';
import { CliError, EXIT } from '../line/cli-error.ts';

const SAID_MAX_CHARS = 512;

/**
 * Watches for it until the process ends. A promise that was left behind must not end the service for all the others: it is told.
 * After an exception that nobody has caught nothing is certain any more, so that the process has to end.
 * @param whose code it is, for people.
 * @returns the first such exception. Never rejects.
 */
export function thrownByOthers(whose: string): Promise<CliError> {
  const tell = (what: string) => process.stderr.write(`${whose} ${what}\n`);
  process.on('unhandledRejection', (error) => tell(`caused an unhandled rejection: ${said(error)}`));
  return new Promise((resolve) => {
    // Also those that come while it ends.
    process.on('uncaughtException', (error: unknown) => {
      const message = `tool_crashed: ${whose} caused an uncaught exception: ${said(error)}; the outcome of in-flight calls is unknown`;
      resolve(Object.assign(new CliError(EXIT.error, 'tool_crashed', message), { cause: error }));
    });
  });
}

// What is thrown may be anything, also something that cannot be told: telling it must not throw anew.
function said(error: unknown): string {
  try {
    return cutGraphemes(String(error), SAID_MAX_CHARS);
  } catch {
    return 'what cannot be told';
  }
}
