/** Converts a model's earlier answers to parts of a prompt. */
import type { LanguageModelV3Message, SharedV3ProviderOptions } from '@ai-sdk/provider';
import type { AssistantMessage, CallPart, Json, ReasoningPart, TextPart } from '@coxswain/protocol';
import { inNameOrder } from './member-order.ts';
import { type PromptRules, promptCallId, promptToolName } from './prompt-rules.ts';

type AssistantParts = Extract<LanguageModelV3Message, { role: 'assistant' }>['content'];

/** The parts of an answer that its provider accepts in a prompt; empty if no part remains. */
export function assistantParts(message: AssistantMessage, rules: PromptRules): AssistantParts {
  const parts: AssistantParts = [];
  for (const part of message.content) {
    switch (part.type) {
      case 'text':
        if (part.text !== '') parts.push({ type: 'text', text: part.text, ...ownMetadata(part, rules) });
        break;
      case 'reasoning':
        if (!message.partial && goesBack(part, rules)) {
          parts.push({ type: 'reasoning', text: part.text, ...ownMetadata(part, rules) });
        }
        break;
      case 'call':
        parts.push({
          type: 'tool-call',
          toolCallId: promptCallId(part.call_id, rules),
          toolName: promptToolName(part.tool),
          input: inputOf(part.args),
          ...ownMetadata(part, rules),
        });
        break;
      default:
        return assertNever(part);
    }
  }
  return parts;
}

function goesBack(part: ReasoningPart, rules: PromptRules): boolean {
  return rules.reasoning === 'signed'
    ? part.provider_metadata?.[rules.metadataKey] !== undefined
    : part.provider_metadata === undefined && part.text !== '';
}

function ownMetadata(
  part: TextPart | ReasoningPart | CallPart,
  rules: PromptRules,
): { providerOptions?: SharedV3ProviderOptions } {
  const own = part.provider_metadata?.[rules.metadataKey];
  if (!own) return {};
  const options: SharedV3ProviderOptions = { [rules.metadataKey]: own };
  // The compatible adapter writes Gemini's signature under one name and reads it under another.
  if (rules.metadataKey === 'openai-compatible' && typeof own.thoughtSignature === 'string') {
    options.google = { thoughtSignature: own.thoughtSignature };
  }
  return { providerOptions: options };
}

// Providers accept only objects here. If the arguments of a call did not parse, its result has the error.
function inputOf(args: Json): Json {
  return typeof args === 'object' && args !== null && !Array.isArray(args) ? inNameOrder(args) : {};
}

function assertNever(part: never): never {
  throw new Error(`a part of an answer has no known type: ${JSON.stringify(part)}`);
}
