/**
 * From a transcript to the prompt that providers are sent.
 *
 * P1 Nothing is reordered, but for files that a result cannot hold: they follow the results of their batch.
 * P2 The results of one batch stand in one message: Gemini counts them there.
 * P3 The same journal gives the same bytes, whichever host sends them (`member-order.ts`).
 * P4 A provider is shown its own metadata and reasoning only, and nothing of what an unfinished answer signed.
 */
import type { LanguageModelV3FunctionTool, LanguageModelV3Message, LanguageModelV3Prompt } from '@ai-sdk/provider';
import type { Message, ToolDefinition, UserMessage } from '@coxswain/protocol';
import { assistantParts } from './assistant-parts.ts';
import { inSchemaOrder } from './member-order.ts';
import type { PromptRules } from './prompt-rules.ts';
import { cachedReminders, pushReminder } from './reminders.ts';
import { showFile } from './shown-file.ts';
import { toolResults } from './tool-results.ts';

type UserParts = Extract<LanguageModelV3Message, { role: 'user' }>['content'];

/** The prompt of a request. */
export function promptOf(system: string, messages: readonly Message[], rules: PromptRules): LanguageModelV3Prompt {
  const prompt: LanguageModelV3Prompt = system === '' ? [] : [{ role: 'system', content: system }];
  const cached = cachedReminders(messages, rules);
  for (let at = 0; at < messages.length; at++) {
    const message = messages[at] as Message;
    switch (message.role) {
      case 'user':
        pushUser(prompt, userParts(message, rules));
        break;
      case 'reminder':
        pushReminder(prompt, message, rules, cached);
        break;
      case 'assistant': {
        const content = assistantParts(message, rules);
        if (content.length > 0) prompt.push({ role: 'assistant', content });
        break;
      }
      case 'tool': {
        const batch = [message];
        for (let next = messages[at + 1]; next?.role === 'tool'; next = messages[at + 1]) {
          batch.push(next);
          at++;
        }
        const { results, after } = toolResults(batch, rules);
        prompt.push({ role: 'tool', content: results });
        pushUser(prompt, after);
        break;
      }
      default:
        return assertNever(message);
    }
  }
  return prompt;
}

/** The tools of a request. */
export function toolsOf(tools: readonly ToolDefinition[]): LanguageModelV3FunctionTool[] {
  return tools.map(({ name, description, input_schema }) => ({
    type: 'function',
    name,
    description,
    inputSchema: inSchemaOrder(input_schema) as LanguageModelV3FunctionTool['inputSchema'],
  }));
}

// Providers refuse a message without content.
function pushUser(prompt: LanguageModelV3Prompt, content: UserParts): void {
  if (content.length > 0) prompt.push({ role: 'user', content });
}

function userParts(message: UserMessage, rules: PromptRules): UserParts {
  const parts: UserParts = [];
  for (const part of message.content) {
    if (part.type === 'file') parts.push(showFile(part, rules.files));
    else if (part.text !== '') parts.push({ type: 'text', text: part.text });
  }
  return parts;
}

function assertNever(message: never): never {
  throw new Error(`a message has no known role: ${JSON.stringify(message)}`);
}
