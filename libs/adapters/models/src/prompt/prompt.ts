/**
 * Converts a transcript to the prompt for a provider.
 *
 * P1 The order is kept, except for files that a result cannot contain: they follow the results of their batch.
 * P2 The results of one batch are in one message, because Gemini counts them there.
 * P3 The same journal produces the same bytes on every host (`member-order.ts`).
 * P4 A provider gets only its own metadata, and only reasoning that its API accepts. Reasoning of an unfinished answer
 * is left out.
 * P5 Text of tools, files, other sessions and transcripts is marked with its origin (`prompt-marks.ts` of the
 * protocol). In text of people, the host's tags are quoted. The model's own answers are unchanged. Text of tool results
 * has the role `tool` only, as providers advise.
 */
import type { LanguageModelV3FunctionTool, LanguageModelV3Message, LanguageModelV3Prompt } from '@ai-sdk/provider';
import {
  type Message,
  noticeText,
  quoteHostTagsInPieces,
  type ShownUserMessage,
  summaryText,
  systemWithMarks,
  type ToolDefinition,
  textOf,
  untrustedText,
} from '@coxswain/protocol';
import { assistantParts } from './assistant-parts.ts';
import { inSchemaOrder } from './member-order.ts';
import type { PromptRules } from './prompt-rules.ts';
import { cachedReminders, pushReminder } from './reminders.ts';
import { shownFile } from './shown-file.ts';
import { toolResults } from './tool-results.ts';

type UserParts = Extract<LanguageModelV3Message, { role: 'user' }>['content'];

/** The prompt of a request. */
export function promptOf(system: string, messages: readonly Message[], rules: PromptRules): LanguageModelV3Prompt {
  const prompt: LanguageModelV3Prompt = [{ role: 'system', content: systemWithMarks(system) }];
  const cached = cachedReminders(messages, rules);
  const said = new UserTexts();
  for (let at = 0; at < messages.length; at++) {
    const message = messages[at] as Message;
    switch (message.role) {
      case 'user':
        pushUser(prompt, userParts(message, rules, said));
        break;
      case 'reminder':
        said.end();
        pushReminder(prompt, message, rules, cached);
        break;
      case 'assistant': {
        said.end();
        const content = assistantParts(message, rules);
        if (content.length > 0) prompt.push({ role: 'assistant', content });
        break;
      }
      case 'tool': {
        said.end();
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
  said.end();
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

// Providers reject a message without content.
function pushUser(prompt: LanguageModelV3Prompt, content: UserParts): void {
  if (content.length > 0) prompt.push({ role: 'user', content });
}

function userParts(message: ShownUserMessage, rules: PromptRules, said: UserTexts): UserParts {
  const { origin } = message;
  if (origin) {
    said.end();
    const text = textOf(message);
    switch (origin.kind) {
      case 'notice':
        return [{ type: 'text', text: noticeText(text) }];
      case 'summary':
      case 'notes':
        return [{ type: 'text', text: summaryText(origin.kind, text) }];
      case 'session':
        return [{ type: 'text', text: untrustedText(`session ${origin.session}`, text) }];
      case 'transcript':
        return [{ type: 'text', text: untrustedText('transcript', text) }];
      case 'persona':
        break;
    }
  }
  const parts: UserParts = [];
  for (const part of message.content) {
    if (part.type === 'file') {
      said.end();
      parts.push(shownFile(part, rules.files));
    } else if (part.text !== '') parts.push(said.add({ type: 'text', text: part.text }));
  }
  return parts;
}

/** Texts of people. A provider may join consecutive texts for the model, so tags are searched across them. */
class UserTexts {
  #texts: { type: 'text'; text: string }[] = [];

  add(part: { type: 'text'; text: string }): typeof part {
    this.#texts.push(part);
    return part;
  }

  /** Another part follows: quotes the host's tags in the texts that were added before it. */
  end(): void {
    const quoted = quoteHostTagsInPieces(this.#texts.map(({ text }) => text));
    for (const [index, part] of this.#texts.entries()) part.text = quoted[index] as string;
    this.#texts = [];
  }
}

function assertNever(message: never): never {
  throw new Error(`a message has no known role: ${JSON.stringify(message)}`);
}
