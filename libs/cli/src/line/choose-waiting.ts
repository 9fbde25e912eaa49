/** Finds the queued message that a line means. */
import { CliError, EXIT, usageError } from './cli-error.ts';

/** A shorter word can also be a word of a text, or a whole id of a message that is no longer queued. */
const BEGINNING_MIN_CHARS = 8;

/**
 * The message whose id starts with the given text, or the newest one. An unknown id is returned unchanged: the session
 * reports what it knows about it, such as a delivered message.
 * @param waiting the ids of the queued messages, the oldest first.
 * @throws CliError `not_pending` if there is no message; exit code 2 if several ids match.
 */
export function chooseWaiting(given: string | undefined, waiting: readonly string[]): string {
  if (given !== undefined) return named(given, waiting) ?? given;
  const newest = waiting.at(-1);
  if (newest === undefined) throw new CliError(EXIT.error, 'not_pending', 'no message is queued; see cox message list');
  return newest;
}

/**
 * Reads `ID TEXT` or `TEXT`: the message to replace, and the new text. The first word is an id only if a queued message
 * has that id.
 * @param waiting the ids of the queued messages, the oldest first.
 * @throws CliError as {@link chooseWaiting}.
 */
export function readReplacement(
  input: string,
  waiting: readonly string[],
): { readonly commandId: string; readonly text: string } {
  const [, word = '', rest] = /^(\S+)(?:\s+([\s\S]+))?$/.exec(input) ?? [];
  const commandId = rest === undefined ? undefined : named(word, waiting);
  return commandId === undefined || rest === undefined
    ? { commandId: chooseWaiting(undefined, waiting), text: input }
    : { commandId, text: rest };
}

function named(word: string, waiting: readonly string[]): string | undefined {
  if (waiting.includes(word)) return word;
  const matching = word.length < BEGINNING_MIN_CHARS ? [] : waiting.filter((id) => id.startsWith(word));
  if (matching.length > 1) throw usageError(`"${word}" matches ${matching.join(', ')}; give more of the id`);
  return matching[0];
}
