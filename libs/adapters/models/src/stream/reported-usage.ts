/**
 * The token usage that a provider reports during its answer. The SDK's adapters report it with the final frame only. So
 * for a stream that breaks off, it is read from the raw frames.
 */
import type { Usage } from '@coxswain/protocol';

type Members = Readonly<Record<string, unknown>>;

/**
 * The usage after one more raw frame, in the format of OpenAI (both APIs), Anthropic or Gemini.
 * @param before the usage so far, which is returned if the frame reports none.
 * @param frame the frame's JSON as received.
 */
export function reportedUsage(before: Usage | null, frame: unknown): Usage | null {
  const { usage, usageMetadata, message, response } = membersOf(frame);
  const reported = [usage, usageMetadata, membersOf(message).usage, membersOf(response).usage].find(isObject);
  if (reported === undefined) return before;
  const read = membersOf(reported);
  // Anthropic reports the input and its cached tokens in the first frame, and the output so far in others.
  const cacheOfAnthropic = [read.cache_read_input_tokens, read.cache_creation_input_tokens];
  const input = read.prompt_tokens ?? read.promptTokenCount ?? sum(read.input_tokens, ...cacheOfAnthropic);
  const output =
    read.completion_tokens ?? read.output_tokens ?? sum(read.candidatesTokenCount, read.thoughtsTokenCount);
  const cached =
    read.cachedContentTokenCount ??
    read.cache_read_input_tokens ??
    membersOf(read.prompt_tokens_details ?? read.input_tokens_details).cached_tokens;
  const reasoning =
    read.thoughtsTokenCount ?? membersOf(read.completion_tokens_details ?? read.output_tokens_details).reasoning_tokens;
  return usageOf({
    input: input ?? before?.input_tokens,
    output: output ?? before?.output_tokens,
    cached: cached ?? before?.cached_input_tokens,
    reasoning: reasoning ?? before?.reasoning_tokens,
  });
}

/** Converts a provider's token counts to the protocol's usage: integers, without optional counts of 0. */
export function usageOf(given: Readonly<Record<'input' | 'output' | 'cached' | 'reasoning', unknown>>): Usage {
  const cached = tokens(given.cached);
  const reasoning = tokens(given.reasoning);
  return {
    input_tokens: tokens(given.input),
    output_tokens: tokens(given.output),
    ...(cached > 0 ? { cached_input_tokens: cached } : {}),
    ...(reasoning > 0 ? { reasoning_tokens: reasoning } : {}),
  };
}

function sum(first: unknown, ...more: readonly unknown[]): number | undefined {
  return first === undefined || first === null
    ? undefined
    : [first, ...more].reduce<number>((all, one) => all + tokens(one), 0);
}

function tokens(count: unknown): number {
  return typeof count === 'number' && Number.isFinite(count) && count > 0 ? Math.trunc(count) : 0;
}

function membersOf(value: unknown): Members {
  return isObject(value) ? (value as Members) : {};
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null;
}
