/** The actor of commands from this machine. */
import { userInfo } from 'node:os';
import { BOUNDS, cutText } from '@coxswain/protocol';
import { usageError } from '../line/mod.ts';

/**
 * The name that commands carry as their actor: COX_ACTOR, else the user of this machine. Other participants see it, and
 * the journal keeps it. It is not verified.
 * @returns undefined if neither is known.
 * @throws CliError with exit code 2 for an invalid COX_ACTOR.
 */
export function actorName(env: NodeJS.ProcessEnv): string | undefined {
  const named = env.COX_ACTOR?.trim();
  if (!named) return userOfThisMachine(env);
  if (named.length > BOUNDS.actorMaxChars || named.startsWith('session:'))
    throw usageError(
      `COX_ACTOR takes a name of at most ${BOUNDS.actorMaxChars} characters that does not start with session:`,
    );
  return named;
}

function userOfThisMachine(env: NodeJS.ProcessEnv): string | undefined {
  const cut = (name = '') => cutText(name.trim(), BOUNDS.actorMaxChars) || undefined;
  try {
    return cut(userInfo().username);
  } catch {
    // A user without an entry in the system's list of users, as in many containers.
    return cut(env.USER);
  }
}
