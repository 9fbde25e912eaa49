/** Finds the queued message that a person at the keyboard means. */
import type { SessionState } from '@coxswain/client';
import { CliError, EXIT } from '../line/mod.ts';

type Waiting = readonly Pick<SessionState['pending'][number], 'commandId'>[];

/** A shorter word can also be a word of a text. */
const BEGINNING_MIN_CHARS = 8;

/**
 * The message whose id starts with the given text, or the newest one. An unknown id is returned unchanged: the session
 * reports what it knows about it, such as a reminder or a delivered message.
 * @throws CliError `not_pending` if there is no message; `usage` if several ids match.
 */
export function chooseWaiting(given: string | undefined, waiting: Waiting): string {
  if (given !== undefined) return named(given, waiting) ?? given;
  const newest = waiting.at(-1);
  if (!newest) throw new CliError(EXIT.error, 'not_pending', 'no message is queued; see cox message list');
  return newest.commandId;
}

/**
 * Reads `ID TEXT` or `TEXT`: the message to replace, and the new text. The first word is an id only if a queued message
 * has that id.
 */
export function readReplacement(
  input: string,
  waiting: Waiting,
): { readonly commandId: string; readonly text: string } {
  const [, word = '', rest] = /^(\S+)(?:\s+([\s\S]+))?$/.exec(input) ?? [];
  const commandId = rest === undefined ? undefined : named(word, waiting);
  return commandId === undefined || rest === undefined
    ? { commandId: chooseWaiting(undefined, waiting), text: input }
    : { commandId, text: rest };
}

function named(word: string, waiting: Waiting): string | undefined {
  const ids = waiting.map(({ commandId }) => commandId);
  if (ids.includes(word)) return word;
  const matching = word.length < BEGINNING_MIN_CHARS ? [] : ids.filter((id) => id.startsWith(word));
  if (matching.length > 1)
    throw new CliError(EXIT.error, 'usage', `"${word}" matches ${matching.join(', ')}; give more of the id`);
  return matching[0];
}
