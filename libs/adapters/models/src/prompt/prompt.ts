/**
 * From a transcript to the prompt that providers are sent.
 *
 * P1 Nothing is reordered, but for files that a result cannot hold: they follow the results of their batch.
 * P2 The results of one batch stand in one message: Gemini counts them there.
 * P3 The same journal gives the same bytes, whichever host sends them (`member-order.ts`).
 * P4 A provider is shown its own metadata and reasoning only, and nothing of what an unfinished answer signed.
 * P5 Text that the host did not write is marked by where it is from; the model's own answers stay as they were
 *    (`prompt-marks.ts` of the protocol). Results of tools are in the role of tools alone, as providers advise.
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
  const said = new SaidByPeople();
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

// Providers refuse a message without content.
function pushUser(prompt: LanguageModelV3Prompt, content: UserParts): void {
  if (content.length > 0) prompt.push({ role: 'user', content });
}

function userParts(message: ShownUserMessage, rules: PromptRules, said: SaidByPeople): UserParts {
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

/** Texts of people. A provider may show the model those that follow each other as one, so tags are looked for across them. */
class SaidByPeople {
  #texts: { type: 'text'; text: string }[] = [];

  add(part: { type: 'text'; text: string }): typeof part {
    this.#texts.push(part);
    return part;
  }

  /** Something else comes next: quotes the tags of the host in what was added since. */
  end(): void {
    const quoted = quoteHostTagsInPieces(this.#texts.map(({ text }) => text));
    for (const [index, part] of this.#texts.entries()) part.text = quoted[index] as string;
    this.#texts = [];
  }
}

function assertNever(message: never): never {
  throw new Error(`a message has no known role: ${JSON.stringify(message)}`);
}
