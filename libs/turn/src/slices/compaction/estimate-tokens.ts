/**
 * Token estimates: rough, cheap and deterministic. The provider's report on a request replaces the estimate of its size.
 */
import type { Json, Message, ToolDefinition } from '@coxswain/protocol';

const CHARS_PER_TOKEN = 4;

/** Overhead of a message: role, separators, ids. */
const MESSAGE_TOKENS = 4;

/** A file, such as an image or a document. Providers bill it by its size, which is unknown here. */
const FILE_TOKENS = 1_500;

/** Length of text up to which a result is not cleared, in UTF-16 units: a stub would free too little. */
const CLEARABLE_CHARS = 400;

/** Tokens of a stub, the text that replaces a cleared result. */
export const STUB_TOKENS = 40;

// Each UTF-16 unit from here on, such as a Chinese character, counts as one token.
const WIDE = /[\u2e80-\uffff]/g;

/** Estimates the tokens of a text. */
export function estimateText(text: string): number {
  const wide = text.match(WIDE)?.length ?? 0;
  return wide + Math.ceil((text.length - wide) / CHARS_PER_TOKEN);
}

/** Estimates the tokens of a message, with its role. */
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

/** Estimates the tokens of tool definitions in a request. */
export function estimateTools(tools: readonly ToolDefinition[]): number {
  let tokens = 0;
  for (const tool of tools)
    tokens += MESSAGE_TOKENS + estimateText(tool.name + tool.description) + estimateJson(tool.input_schema);
  return tokens;
}

/** Whether a compaction may replace a result by a stub: it has a file, or a long text. */
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
