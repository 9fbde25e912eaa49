/**
 * Detects that a provider refused a prompt because it exceeds the model's context window. Some providers send a code,
 * the others only a sentence.
 */

/** Values of `error.code` or `error.type` of the OpenAI APIs, llama.cpp's server and Anthropic's size limit. */
const CODES: ReadonlySet<unknown> = new Set([
  'context_length_exceeded',
  'exceed_context_size_error',
  'request_too_large',
]);

/**
 * Anthropic ("prompt is too long: 210000 tokens > 200000 maximum", "input length and `max_tokens` exceed context
 * limit"), Gemini ("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."), vLLM
 * and OpenRouter ("… maximum context length is 8192 tokens …"), llama.cpp ("the request exceeds the available context
 * size").
 */
const SENTENCES: readonly RegExp[] = [
  /prompt is too long/i,
  /exceed(s|ed)? (the |model )?(context|available context) (limit|size|window|length)/i,
  /input token count .{0,40}exceeds the maximum number of tokens/i,
  /maximum context length/i,
  /(prompt|input) .{0,40}(longer|larger) than (the|this) .{0,20}context/i,
];

/**
 * Whether the error of a provider means that the prompt is too long.
 * @param error the error as received: an object with members of the provider, or a sentence.
 */
export function isContextOverflow(error: unknown): boolean {
  return says(error, 0);
}

function says(error: unknown, depth: number): boolean {
  if (typeof error === 'string') return SENTENCES.some((sentence) => sentence.test(error));
  if (typeof error !== 'object' || error === null || depth > 3) return false;
  const { code, type, message, error: inner, data, response } = error as { readonly [key: string]: unknown };
  if (CODES.has(code) || CODES.has(type)) return true;
  return [message, inner, data, response].some((part) => says(part, depth + 1));
}
