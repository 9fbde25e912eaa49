/**
 * Attributes of spans by the semantic conventions of OpenTelemetry for generative AI
 * (https://opentelemetry.io/docs/specs/semconv/gen-ai/); what they have no name for is under `coxswain.`.
 */
import {
  type AssistantMessage,
  type Json,
  redactJson,
  type SpanAttributes,
  type SpanValue,
  type Usage,
} from '@coxswain/protocol';

/** Without those that are undefined. */
export function attributes(given: Readonly<Record<string, SpanValue | null | undefined>>): SpanAttributes {
  return Object.fromEntries(
    Object.entries(given).filter((entry): entry is [string, SpanValue] => entry[1] !== undefined && entry[1] !== null),
  );
}

/** Tokens. */
export function usageAttributes({ input_tokens, output_tokens, cached_input_tokens, reasoning_tokens }: Usage) {
  return {
    'gen_ai.usage.input_tokens': input_tokens,
    'gen_ai.usage.output_tokens': output_tokens,
    'gen_ai.usage.cache_read.input_tokens': cached_input_tokens,
    'gen_ai.usage.reasoning.output_tokens': reasoning_tokens,
  };
}

/** A model, by the name under which it is asked: `provider/name`. */
export function modelAttributes(model: string | null) {
  if (model === null) return {};
  const [provider = '', ...name] = model.split('/');
  return { 'gen_ai.provider.name': PROVIDERS[provider] ?? provider, 'gen_ai.request.model': name.join('/') || model };
}

// As the conventions call them; others stand under their own names.
const PROVIDERS: Readonly<Record<string, string>> = {
  'openai-chat': 'openai',
  'openai-compatible': 'openai_compatible',
  google: 'gcp.gemini',
};

const CONTENT = { chars: 8_000, scalarChars: 8, textChars: 2_000, listItems: 32, members: 64, depth: 8, counts: true };

/** What was said, as the conventions write it: bounded, and without what looks like a secret. */
export function contentText(value: unknown, masked: (text: string) => string): string {
  const clean = (text: string) => withoutLogins(masked(text));
  return JSON.stringify(redactJson(maskedIn(value as Json, clean), CONTENT));
}

// What spans take with them leaves the machine, so more is taken out here than of arguments, whose redaction stands in journals and
// has to stay as it is: who logs in by an address with a token alone, and values that a text itself calls secret.
const TOKEN_IN_ADDRESS = /\b((?:nats|tls|wss?|https?):\/\/)[^\s/:@?#"'\\]{6,}(?=@)/gi;
const BASIC_LOGIN = /(authorization\\?["']?:\s?\\?["']?basic\s)[\w+/=-]{6,}/gi;
const NAMED_IN_TEXT =
  /((?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key)\\?["']?(?:=|:\s?)\\?["']?)[^\s"'\\&;,<>(){}[\]]{6,}/gi;

function withoutLogins(text: string): string {
  return text
    .replace(BASIC_LOGIN, '$1[redacted]')
    .replace(TOKEN_IN_ADDRESS, '$1[redacted]')
    .replace(NAMED_IN_TEXT, '$1[redacted]');
}

function maskedIn(value: Json, masked: (text: string) => string): Json {
  if (typeof value === 'string') return masked(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => maskedIn(item, masked));
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [masked(key), maskedIn(item, masked)]));
}

/** An answer as `gen_ai.output.messages`. */
export function outputMessages(
  message: AssistantMessage,
  finishReason: string,
  masked: (text: string) => string,
): string {
  const parts = message.content.map((part) => {
    if (part.type === 'text') return { type: 'text', content: part.text };
    if (part.type === 'call') return { type: 'tool_call', id: part.call_id, name: part.tool, arguments: part.args };
    return { type: part.type };
  });
  return contentText([{ role: 'assistant', parts, finish_reason: finishReason }], masked);
}
