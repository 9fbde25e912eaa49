/**
 * Span attributes by OpenTelemetry's semantic conventions for generative AI
 * (https://opentelemetry.io/docs/specs/semconv/gen-ai/). Attributes outside the conventions have the prefix `coxswain.`.
 */
import {
  type AssistantMessage,
  assertNever,
  BlobRef,
  type Json,
  type Message,
  type RoleHint,
  redactJson,
  type SpanAttributes,
  type SpanValue,
  type Usage,
} from '@coxswain/protocol';

/** Removes attributes that are undefined or null. */
export function attributes(given: Readonly<Record<string, SpanValue | null | undefined>>): SpanAttributes {
  return Object.fromEntries(
    Object.entries(given).filter((entry): entry is [string, SpanValue] => entry[1] !== undefined && entry[1] !== null),
  );
}

/** Token counts. */
export function usageAttributes({ input_tokens, output_tokens, cached_input_tokens, reasoning_tokens }: Usage) {
  return {
    'gen_ai.usage.input_tokens': input_tokens,
    'gen_ai.usage.output_tokens': output_tokens,
    'gen_ai.usage.cache_read.input_tokens': cached_input_tokens,
    'gen_ai.usage.reasoning.output_tokens': reasoning_tokens,
  };
}

/** The requested model, from its name `provider/name`. */
export function modelAttributes(model: string | null) {
  if (model === null) return {};
  const [provider = '', ...name] = model.split('/');
  return {
    'gen_ai.provider.name': (Object.hasOwn(PROVIDERS, provider) ? PROVIDERS[provider] : undefined) ?? provider,
    'gen_ai.request.model': name.join('/') || model,
  };
}

// Names of providers by the conventions, or in their style; other providers keep their own names.
const PROVIDERS: Readonly<Record<string, string>> = {
  'openai-chat': 'openai',
  'openai-compatible': 'openai_compatible',
  google: 'gcp.gemini',
};

/** Bounds of one value in a span. */
const CONTENT = { chars: 8_000, valueChars: 8, textChars: 2_000, listItems: 32, members: 64, depth: 8, counts: true };

/** A value as JSON for a span: bounded, and with apparent secrets masked. */
export function contentText(value: unknown, masked: (text: string) => string): string {
  const clean = (text: string) => withoutLogins(masked(text));
  return JSON.stringify(redactJson(maskedIn(value as Json, clean), CONTENT));
}

/** A text for a span: about 2,000 characters at most, and with apparent secrets masked. */
export function spanText(text: string, masked: (text: string) => string): string {
  return JSON.parse(contentText(text, masked)) as string;
}

// Spans leave the computer, so they are masked more strictly than arguments, whose redaction is part of the journal and
// must not change. Masked here as well: a token as the user of an address, a login by HTTP Basic authentication, and
// values that the text itself labels as secret.
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
  return contentText([{ ...messageOf(message), finish_reason: finishReason }], masked);
}

/** Maximum number of messages of one request in a span, and their total characters. */
const INPUT_MESSAGES_MAX = 32;
const INPUT_CHARS_MAX = 16_000;

/**
 * The input of a model or an agent as `gen_ai.input.messages`: the newest messages, oldest first. The number of messages that
 * exceed the bounds is in `coxswain.input.messages_left_out`.
 */
export function inputMessages(messages: readonly Message[], masked: (text: string) => string) {
  const shown: string[] = [];
  let room = INPUT_CHARS_MAX;
  for (let at = messages.length - 1; at >= 0 && shown.length < INPUT_MESSAGES_MAX; at--) {
    const text = contentText(messageOf(messages[at] as Message), masked);
    room -= text.length;
    if (room < 0 && shown.length > 0) break;
    shown.unshift(text);
  }
  const leftOut = messages.length - shown.length;
  return {
    'gen_ai.input.messages': `[${shown.join(',')}]`,
    'coxswain.input.messages_left_out': leftOut > 0 ? leftOut : undefined,
  };
}

/** The system prompt as `gen_ai.system_instructions`. */
export function systemInstructions(text: string, masked: (text: string) => string): string {
  return contentText([{ type: 'text', content: text }], masked);
}

/**
 * A message with its `parts`. A reminder has the role `system` or `developer` by its hint, `system` without a hint, and
 * `user` with any other hint.
 */
function messageOf(message: Message): { readonly role: string; readonly parts: readonly Json[] } {
  if (message.role === 'tool') {
    const { call_id: id, tool: name, content } = message;
    return { role: 'tool', parts: [{ type: 'tool_call_response', id, name, response: content.map(partOf) }] };
  }
  const role = message.role === 'reminder' ? reminderRole(message.role_hint) : message.role;
  return { role, parts: message.content.map(partOf) };
}

function reminderRole(hint: RoleHint = 'system'): string {
  return hint === 'system' || hint === 'developer' ? hint : 'user';
}

function partOf(part: Message['content'][number]): Json {
  switch (part.type) {
    case 'text':
    case 'reasoning':
      return { type: part.type, content: part.text };
    case 'call':
      return { type: 'tool_call', id: part.call_id, name: part.tool, arguments: part.args };
    case 'file': {
      // Bytes of files never go into a span.
      const stored = BlobRef.safeParse(part.data);
      const id = stored.success ? stored.data.sha256 : part.filename;
      const modality = part.media_type.split('/')[0] ?? 'application';
      return { type: 'file', mime_type: part.media_type, modality, ...(id === undefined ? {} : { file_id: id }) };
    }
    default:
      return assertNever(part);
  }
}
