/** Calls that a person has let run with other arguments: what their model is told before the result. */
import { canonicalJson, cutText, type EventOf, type TextPart } from '@coxswain/protocol';

const SHOWN_MAX_CHARS = 2_000;

/** The note that stands before such a call's result: without it a model would take the result for that of its own arguments. */
export function editedNote({ args, actor }: EventOf<'approval_decided'>): TextPart {
  const text = canonicalJson(args ?? {});
  const shown = text.length > SHOWN_MAX_CHARS ? `${cutText(text, SHOWN_MAX_CHARS)}…` : text;
  const who = actor ? `${actor.name} (a person)` : 'A person';
  return {
    type: 'text',
    text: `[${who} has edited the arguments of this call before it was run. It was run with ${shown}]`,
  };
}
