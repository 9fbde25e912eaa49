/** The changes that a fork can make at a record: its message, or the next prompt. No rendering. */
import { INJECTION_VERBS, type JournalRecord } from '@coxswain/protocol';
import { type ForkOptions, hasEnded } from '../browser-client.ts';

/**
 * The prompt of a fork. `message`: the text of the record. `next`: the run has ended, and this prompt starts another.
 */
export type ForkPrompt =
  | { readonly kind: 'message' | 'next'; readonly text: string }
  /** The record has no text that can be changed. */
  | { readonly kind: 'none' };

/** Verbs with a text as their body. */
const SAID: ReadonlySet<string> = new Set(['prompt', ...INJECTION_VERBS]);

/** The prompt that a fork at this record can change. */
export function forkPromptOf(record: JournalRecord | undefined): ForkPrompt {
  if (!record) return { kind: 'none' };
  const { input, state } = record;
  if (input.type === 'command') {
    const text = input.verb === 'start' ? input.body.prompt : SAID.has(input.verb) ? input.body.body : undefined;
    if (typeof text === 'string') return { kind: 'message', text };
  }
  return hasEnded(state) ? { kind: 'next', text: '' } : { kind: 'none' };
}

/** The typed changes; undefined if there are none. */
export function forkChanges(
  prompt: ForkPrompt,
  typed: { readonly prompt: string; readonly model: string },
  model: string | null,
): ForkOptions['changes'] {
  const text = prompt.kind === 'none' || typed.prompt === prompt.text ? '' : typed.prompt;
  const named = typed.model.trim();
  const changes = {
    ...(text.trim() === '' ? {} : { prompt: text }),
    ...(named === '' || named === model ? {} : { model: named }),
  };
  return Object.keys(changes).length === 0 ? undefined : changes;
}
