/** What a typed line asks for while a session is attached. */
import { nearest } from '../line/nearest.ts';
import type { LineKind } from '../terminal/line-editor.ts';
import { readDuration } from './typed-duration.ts';

/** A line, understood. */
export type TypedCommand =
  | { readonly do: 'steer' | 'followup' | 'remind'; readonly text: string }
  | { readonly do: 'interrupt'; readonly text: string; readonly preempt: boolean }
  | { readonly do: 'decide'; readonly decision: 'allow' | 'deny'; readonly reason: string | undefined }
  | { readonly do: 'cancel'; readonly reason: string | undefined }
  | { readonly do: 'cancel_call'; readonly callId: string | undefined }
  | { readonly do: 'suspend'; readonly forMs: number | undefined }
  | { readonly do: 'resume' | 'detach' | 'nothing' }
  | { readonly do: 'help'; readonly problem: string | null };

const WORDS = [
  'interrupt',
  'followup',
  'remind',
  'approve',
  'deny',
  'cancel',
  'cancel-call',
  'suspend',
  'resume',
  'detach',
  'help',
] as const;

/** What people are told when they ask. */
export const TYPED_HELP = [
  'type to steer · Esc, then type, to interrupt what is being said or done · Ctrl-C to detach or cancel',
  '/interrupt TEXT · /followup TEXT · /remind TEXT · /approve · /deny [REASON] · /cancel [REASON] · /cancel-call [ID] · /suspend [DURATION] · /resume · /detach',
  '//word sends /word as a text',
].join('\n');

/**
 * Reads a line.
 * @param asked whether an approval waits: only then are `y` and `n` decisions.
 */
export function readTyped(line: string, kind: LineKind, asked: boolean): TypedCommand {
  const text = line.trim();
  if (text === '') return { do: 'nothing' };
  // Who reaches for Esc wants to be heard now.
  if (kind === 'interrupt') return { do: 'interrupt', text, preempt: true };
  if (asked && /^y(es)?$/i.test(text)) return { do: 'decide', decision: 'allow', reason: undefined };
  if (asked && /^no?$/i.test(text)) return { do: 'decide', decision: 'deny', reason: undefined };
  const slash = /^\/([\p{L}\p{N}_-]+)(?:\s+([\s\S]*))?$/u.exec(text);
  // A path such as /etc/hosts is a text; one slash more makes a text of what would be a command.
  if (!slash) return { do: 'steer', text: text.replace(/^\/(?=\/+[\p{L}\p{N}_-]+(?:\s|$))/u, '') };
  const word = slash[1] as string;
  const rest = slash[2]?.trim() || undefined;
  switch (word as (typeof WORDS)[number]) {
    case 'interrupt':
    case 'followup':
    case 'remind':
      if (rest === undefined) return { do: 'help', problem: `/${word} needs a text` };
      if (word === 'interrupt') return { do: word, text: rest, preempt: false };
      return { do: word as 'followup' | 'remind', text: rest };
    case 'approve':
    case 'deny':
      if (!asked) return { do: 'help', problem: 'nothing waits for an approval' };
      return { do: 'decide', decision: word === 'approve' ? 'allow' : 'deny', reason: rest };
    case 'cancel':
      return { do: 'cancel', reason: rest };
    case 'cancel-call':
      return { do: 'cancel_call', callId: rest };
    case 'suspend': {
      const forMs = rest === undefined ? undefined : readDuration(rest);
      if (forMs === null)
        return { do: 'help', problem: '/suspend takes a duration such as 90s, 15m, 2h or 30d, or nothing' };
      return { do: 'suspend', forMs };
    }
    case 'resume':
    case 'detach':
      return { do: word as 'resume' | 'detach' };
    case 'help':
      return { do: 'help', problem: null };
    default:
      return { do: 'help', problem: unknownWord(word) };
  }
}

/** A word that is no command was most likely meant as one: it is not sent to the model. */
function unknownWord(word: string): string {
  const meant = nearest(word.toLowerCase(), WORDS);
  const shown = word.length > 40 ? `${word.slice(0, 40)}…` : word;
  const instead = meant === null ? `there are ${WORDS.map((one) => `/${one}`).join(', ')}` : `did you mean /${meant}?`;
  return `there is no /${shown}; ${instead} (to send it as a text, begin it with //${shown})`;
}
