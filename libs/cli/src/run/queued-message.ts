/** Finds the message that a command line names. */
import type { Session } from '@coxswain/client';
import { type OpenBus, sessionStatus } from '../instance/mod.ts';
import { chooseWaiting } from '../line/mod.ts';

/**
 * The id of the queued message or shown reminder that starts with the given text. An unknown id is returned unchanged.
 * @throws CliError with exit code 2 if several ids match.
 */
export async function queuedMessage(bus: OpenBus, session: Session, given: string): Promise<string> {
  const { pending, reminders } = await sessionStatus(bus, session);
  return chooseWaiting(
    given,
    [...pending, ...reminders].map(({ command_id }) => command_id),
  );
}
