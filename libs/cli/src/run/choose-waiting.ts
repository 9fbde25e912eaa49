/** Which of the messages that wait a person at the keyboard means. */
import type { SessionState } from '@coxswain/client';
import { CliError, EXIT } from '../line/cli-error.ts';

type Waiting = readonly Pick<SessionState['pending'][number], 'commandId'>[];

/** A shorter word may be a word of a text as well. */
const BEGINNING_MIN_CHARS = 8;

/**
 * The one whose id begins with what was given, or the newest. An id that is not among them is passed on, so that the
 * session says what it knows of it: a reminder that is shown, something that was delivered.
 */
export function chooseWaiting(given: string | undefined, waiting: Waiting): string {
  if (given !== undefined) return named(given, waiting) ?? given;
  const newest = waiting.at(-1);
  if (!newest) throw new CliError(EXIT.error, 'not_pending', 'no message is queued; see cox message list');
  return newest.commandId;
}

/** Of `ID TEXT` or `TEXT`: what is to be replaced, and by what. The first word is an id only where one of them has it. */
export function readReplacement(said: string, waiting: Waiting): { readonly commandId: string; readonly text: string } {
  const [, word = '', rest] = /^(\S+)(?:\s+([\s\S]+))?$/.exec(said) ?? [];
  const commandId = rest === undefined ? undefined : named(word, waiting);
  return commandId === undefined || rest === undefined
    ? { commandId: chooseWaiting(undefined, waiting), text: said }
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
