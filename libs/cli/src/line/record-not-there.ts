/** The error for a record that a journal does not have: the same for a session, a file and a pipe. */
import { CliError, EXIT } from './cli-error.ts';

/**
 * Builds the error, with exit code 2.
 * @param asked the flag as it was typed: `--from 12`.
 * @param newest the number of the journal's last record.
 * @param canFollow whether `--follow` would wait for the next one.
 */
export function recordNotThere(asked: string, newest: number, canFollow = false): CliError {
  const more = canFollow ? `; --follow --from ${newest + 1} waits for it` : '';
  return new CliError(
    EXIT.usage,
    'record_not_there',
    `record_not_there: ${asked} does not exist yet: the newest record is ${newest}${more}`,
  );
}
