/**
 * Token estimates: rough, cheap and the same on every machine. What a provider reports takes their place as soon as
 * there is a report, so they only have to bridge from one answer to the next prompt.
 */
import type { Json, Message, ToolDefinition } from '@coxswain/protocol';

const CHARS_PER_TOKEN = 4;

/** Role, separators, ids: what a message costs beside its content. */
const MESSAGE_TOKENS = 4;

/** An image or a document page; providers bill them by size, of which nothing is known here. */
const FILE_TOKENS = 1_500;

/** Below this a result is no longer than the stub that would stand for it. */
const CLEARABLE_CHARS = 400;

/** What a stub costs. */
export const STUB_TOKENS = 40;

// From here on scripts are written without spaces, and a token is about one character.
const WIDE = /[\u2e80-\uffff]/g;

/** Tokens of a text. */
export function estimateText(text: string): number {
  const wide = text.match(WIDE)?.length ?? 0;
  return wide + Math.ceil((text.length - wide) / CHARS_PER_TOKEN);
}

/** Tokens of a message, its role included. */
export function estimateMessage(message: Pick<Message, 'content'>): number {
  let tokens = MESSAGE_TOKENS;
  for (const part of message.content) {
    switch (part.type) {
      case 'text':
      case 'reasoning':
        tokens += estimateText(part.text);
        break;
      case 'call':
        tokens += estimateText(part.tool) + estimateJson(part.args);
        break;
      case 'file':
        tokens += FILE_TOKENS;
        break;
    }
  }
  return tokens;
}

/** Tokens of tools as a request shows them. */
export function estimateTools(tools: readonly ToolDefinition[]): number {
  let tokens = 0;
  for (const tool of tools)
    tokens += MESSAGE_TOKENS + estimateText(tool.name + tool.description) + estimateJson(tool.input_schema);
  return tokens;
}

/** Whether a result is worth a stub in its place. */
export function isClearable(content: Message['content']): boolean {
  let chars = 0;
  for (const part of content) {
    if (part.type === 'file') return true;
    if (part.type === 'text') chars += part.text.length;
  }
  return chars > CLEARABLE_CHARS;
}

function estimateJson(value: Json): number {
  return estimateText(JSON.stringify(value));
}
