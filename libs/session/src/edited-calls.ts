/** Calls that a person has let run with other arguments: what their model is told before the result. */
import { canonicalJson, cutText, type EventOf, labelText } from '@coxswain/protocol';

const SHOWN_MAX_CHARS = 2_000;

/** The note on such a call: without it a model would take the result for that of its own arguments. */
export function editedNote({ args, actor }: EventOf<'approval_decided'>): string {
  const text = canonicalJson(args ?? {});
  const shown = text.length > SHOWN_MAX_CHARS ? `${cutText(text, SHOWN_MAX_CHARS)}…` : text;
  const who = actor ? `${labelText(actor.name)} (a person)` : 'A person';
  return `[${who} edited the arguments of this tool call before it ran. It ran with ${shown}]`;
}
