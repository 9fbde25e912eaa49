/** Parses a line that is typed while a session is attached. */
import { cutGraphemes, type Json, type JsonObject, nearestWord } from '@coxswain/protocol';
import { readDuration } from '../line/mod.ts';
import type { LineKind } from './composer.ts';

/** A parsed line. */
export type TypedCommand =
  | { readonly do: 'steer' | 'followup' | 'remind'; readonly text: string }
  | { readonly do: 'interrupt'; readonly text: string; readonly preempt: boolean }
  | {
      readonly do: 'decide';
      readonly decision: 'allow' | 'deny';
      readonly reason: string | undefined;
      /** The decision also applies to later calls of the same kind in this session. */
      readonly remember?: 'session';
      /** Arguments that replace those of the call. */
      readonly args?: JsonObject;
    }
  /** Starts to edit the arguments of the pending call. */
  | { readonly do: 'edit_args' }
  | { readonly do: 'cancel'; readonly reason: string | undefined }
  | { readonly do: 'cancel_call'; readonly callId: string | undefined }
  | { readonly do: 'suspend'; readonly forMs: number | undefined; readonly signal: string | undefined }
  | { readonly do: 'signal'; readonly name: string; readonly data: Json | undefined }
  | { readonly do: 'withdraw'; readonly commandId: string | undefined }
  /** The first word may be the id of a queued message. Only the code that knows the queue can decide that. */
  | { readonly do: 'edit'; readonly text: string }
  | { readonly do: 'resume' | 'messages' | 'detach' | 'nothing' }
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
  'signal',
  'messages',
  'withdraw',
  'edit',
  'detach',
  'help',
] as const;

/** The keys and commands, as printed by `/help`. */
export const TYPED_HELP = [
  'Enter sends · Alt-Enter, Ctrl-J or \\ and Enter: new line · ↑ ↓: earlier messages · Esc, then type: interrupt',
  'Ctrl-O: unfold tool calls · Tab: next approval · Ctrl-C: detach or cancel · Ctrl-D: detach · Ctrl-Z: pause cox',
  'approvals: y allow · a allow, and later calls like it · n deny · e edit the arguments, each with Enter',
  '/interrupt TEXT · /followup TEXT · /remind TEXT · /approve · /deny [REASON] · /cancel [REASON] · /cancel-call [ID] · /detach',
  '/messages: queued messages with their ids · /withdraw [ID], /edit [ID] TEXT: the newest without an ID',
  '/suspend [DURATION] [signal NAME] · /resume · /signal NAME [JSON]',
  '//word sends /word as a text',
].join('\n');

/**
 * Parses a line.
 * @param asked whether an approval is pending: only then are `y`, `a`, `n` and `e` answers to it.
 */
export function readTyped(line: string, kind: LineKind, asked: boolean): TypedCommand {
  const text = line.trim();
  if (text === '') return { do: 'nothing' };
  const slash = /^\/([\p{L}\p{N}_-]+)(?:\s+([\s\S]*))?$/u.exec(text);
  // A path such as /etc/hosts is a text. An additional slash turns a command into a text.
  const content = text.replace(/^\/(?=\/+[\p{L}\p{N}_-]+(?:\s|$))/u, '');
  // An interrupt ends the running answer and calls. The line is a text for the model, unless it is a command.
  if (kind === 'interrupt' && !slash) return { do: 'interrupt', text: content, preempt: true };
  if (asked && /^y(es)?$/i.test(text)) return { do: 'decide', decision: 'allow', reason: undefined };
  if (asked && /^no?$/i.test(text)) return { do: 'decide', decision: 'deny', reason: undefined };
  if (asked && /^a(lways)?$/i.test(text))
    return { do: 'decide', decision: 'allow', reason: undefined, remember: 'session' };
  if (asked && /^e(dit)?$/i.test(text)) return { do: 'edit_args' };
  if (!slash) return { do: 'steer', text: content };
  const word = slash[1] as string;
  const rest = slash[2]?.trim() || undefined;
  switch (word as (typeof WORDS)[number]) {
    case 'interrupt':
    case 'followup':
    case 'remind':
      if (rest === undefined) return { do: 'help', problem: `/${word} needs a text` };
      if (word === 'interrupt') return { do: word, text: rest, preempt: kind === 'interrupt' };
      return { do: word as 'followup' | 'remind', text: rest };
    case 'approve':
    case 'deny':
      if (!asked) return { do: 'help', problem: 'no approval is pending' };
      return { do: 'decide', decision: word === 'approve' ? 'allow' : 'deny', reason: rest };
    case 'cancel':
      return { do: 'cancel', reason: rest };
    case 'cancel-call':
      return { do: 'cancel_call', callId: rest };
    case 'suspend':
      return readSuspend(rest);
    case 'signal':
      return readSignal(rest);
    case 'withdraw':
      if (rest !== undefined && /\s/.test(rest)) return { do: 'help', problem: '/withdraw takes one id, or nothing' };
      return { do: 'withdraw', commandId: rest };
    case 'edit':
      if (rest === undefined) return { do: 'help', problem: '/edit needs a text' };
      return { do: 'edit', text: rest };
    case 'resume':
    case 'messages':
    case 'detach':
      return { do: word as 'resume' | 'messages' | 'detach' };
    case 'help':
      return { do: 'help', problem: null };
    default:
      return { do: 'help', problem: unknownWord(word) };
  }
}

function readSuspend(rest: string | undefined): TypedCommand {
  const found = /^(?!signal\s*$)(?:(?!signal\s)(\S+))?(?:\s*\bsignal\s+(\S+))?$/.exec(rest ?? '');
  const [, duration, signal] = found ?? [];
  const forMs = duration === undefined ? undefined : readDuration(duration);
  if (found === null || forMs === null)
    return {
      do: 'help',
      problem: '/suspend takes a duration such as 90s, 15m, 2h or 30d, signal NAME, both or nothing',
    };
  return { do: 'suspend', forMs, signal };
}

function readSignal(rest: string | undefined): TypedCommand {
  const [, name, data] = /^(\S+)(?:\s+([\s\S]+))?$/.exec(rest ?? '') ?? [];
  if (name === undefined) return { do: 'help', problem: '/signal needs a name' };
  if (data === undefined) return { do: 'signal', name, data };
  try {
    return { do: 'signal', name, data: JSON.parse(data) as Json };
  } catch (error) {
    return { do: 'help', problem: `/signal takes JSON after the name: ${(error as Error).message}` };
  }
}

/** An unknown word after a slash was probably meant as a command, so it is not sent to the model. */
function unknownWord(word: string): string {
  const meant = nearestWord(word.toLowerCase(), WORDS);
  const shown = word.length > 40 ? `${cutGraphemes(word, 40)}…` : word;
  const instead = meant === null ? `there are ${WORDS.map((one) => `/${one}`).join(', ')}` : `did you mean /${meant}?`;
  return `there is no /${shown}; ${instead} (to send it as a text, begin it with //${shown})`;
}
