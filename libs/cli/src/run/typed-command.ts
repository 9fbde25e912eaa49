/** What a typed line asks for while a session is attached. */
import { nearest } from '../line/nearest.ts';
import type { LineKind } from '../terminal/line-editor.ts';

/** A line, understood. */
export type TypedCommand =
  | { readonly do: 'steer' | 'followup' | 'remind'; readonly text: string }
  | { readonly do: 'interrupt'; readonly text: string; readonly preempt: boolean }
  | { readonly do: 'decide'; readonly decision: 'allow' | 'deny'; readonly reason: string | undefined }
  | { readonly do: 'cancel'; readonly reason: string | undefined }
  | { readonly do: 'cancel_call'; readonly callId: string | undefined }
  | { readonly do: 'suspend' | 'resume' | 'detach' | 'nothing' }
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
  '/interrupt TEXT · /followup TEXT · /remind TEXT · /approve · /deny [REASON] · /cancel [REASON] · /cancel-call [ID] · /suspend · /resume · /detach',
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
  const slash = /^\/([a-z-]+)(?:\s+([\s\S]*))?$/.exec(text);
  if (!slash) return { do: 'steer', text };
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
    case 'suspend':
    case 'resume':
    case 'detach':
      return { do: word as 'suspend' | 'resume' | 'detach' };
    case 'help':
      return { do: 'help', problem: null };
    default: {
      // A path such as /etc/hosts is a text; a mistyped word is not sent to the model.
      const meant = nearest(word, WORDS);
      return meant === null
        ? { do: 'steer', text }
        : { do: 'help', problem: `there is no /${word}; did you mean /${meant}?` };
    }
  }
}
