/** Finds sessions by a prefix of their id. */
import { type BusClient, type BusSession, isNotPermitted } from '@coxswain/client';
import { cutGraphemes, SessionId } from '@coxswain/protocol';
import { CliError, EXIT, usageError } from '../line/mod.ts';

const SHOWN_MAX = 8;

/**
 * The id that equals the prefix, or else the only id that starts with it.
 * @throws CliError `session_not_found` if none matches; exit code 2 for an empty prefix or several matches.
 */
export function matchPrefix(prefix: string, ids: readonly string[]): string {
  // Every id starts with the empty prefix. An unset variable must not select the only session.
  if (prefix === '') throw usageError('the session’s id is empty; cox session list lists them');
  if (ids.includes(prefix)) return prefix;
  const matching = ids.filter((id) => id.startsWith(prefix));
  const [only] = matching;
  if (only === undefined) {
    throw new CliError(
      EXIT.error,
      'session_not_found',
      `session_not_found: no session begins with "${cutGraphemes(prefix, 64)}"; cox session list lists them`,
    );
  }
  if (matching.length > 1) {
    const shown = matching.slice(0, SHOWN_MAX).join(', ');
    const more = matching.length > SHOWN_MAX ? `, and ${matching.length - SHOWN_MAX} more` : '';
    throw new CliError(EXIT.usage, 'usage', `"${prefix}" matches ${shown}${more}; give more of the id`);
  }
  return only;
}

/** The session that a command line names. @throws the errors of {@link matchPrefix}. */
export async function findSession(client: BusClient, prefix: string): Promise<BusSession> {
  return client.session(matchPrefix(prefix, await knownIds(client, prefix)));
}

/** A user who may not list sessions gives the whole id. */
async function knownIds(client: BusClient, given: string): Promise<readonly string[]> {
  try {
    return await client.sessionIds();
  } catch (error) {
    if (isNotPermitted(error) && SessionId.safeParse(given).success) return [given];
    throw error;
  }
}
