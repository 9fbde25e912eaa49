/**
 * Converts reminders to parts of a prompt, in `<system-reminder>` tags that their text cannot close. A reminder gets
 * its requested role, if the provider supports that.
 */
import type { LanguageModelV3Message, LanguageModelV3Prompt, SharedV3ProviderOptions } from '@ai-sdk/provider';
import { type Message, type ReminderMessage, reminderText, textOf } from '@coxswain/protocol';
import type { PromptRules } from './prompt-rules.ts';

type UserPart = Extract<LanguageModelV3Message, { role: 'user' }>['content'][number];

/** The maximum number of reminders with a cache mark. Anthropic accepts four marks, and one is left for other uses. */
const CACHE_MARKS_MAX = 3;

/** The reminders that mark a cache position: the newest ones that request it. */
export function cachedReminders(messages: readonly Message[], rules: PromptRules): ReadonlySet<Message> {
  if (!rules.cacheMark) return NONE;
  return new Set(messages.filter(asksForCache).slice(-CACHE_MARKS_MAX));
}
const NONE: ReadonlySet<Message> = new Set();

function asksForCache(message: Message): boolean {
  return message.role === 'reminder' && message.role_hint === 'ephemeral_cache';
}

/** Adds a reminder to the prompt. */
export function pushReminder(
  prompt: LanguageModelV3Prompt,
  message: ReminderMessage,
  rules: PromptRules,
  cached: ReadonlySet<Message>,
): void {
  const text = reminderText(textOf(message));
  switch (message.role_hint ?? 'system') {
    case 'system':
    case 'developer':
      prompt.push(
        rules.instructions === 'system'
          ? { role: 'system', content: text }
          : { role: 'user', content: [{ type: 'text', text }] },
      );
      return;
    case 'user_block':
      pushBlock(prompt, { type: 'text', text });
      return;
    case 'ephemeral_cache':
      pushBlock(prompt, { type: 'text', text, ...markOf(rules, cached.has(message)) });
      return;
  }
}

// A block is added to the preceding user message; without one it is a message of its own.
function pushBlock(prompt: LanguageModelV3Prompt, part: UserPart): void {
  const last = prompt.at(-1);
  if (last?.role === 'user') last.content.push(part);
  else prompt.push({ role: 'user', content: [part] });
}

function markOf(rules: PromptRules, marked: boolean): { providerOptions?: SharedV3ProviderOptions } {
  return marked && rules.cacheMark ? { providerOptions: rules.cacheMark } : {};
}
