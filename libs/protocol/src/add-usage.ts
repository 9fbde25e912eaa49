/** Sums of tokens. */
import type { Usage } from './inputs.ts';

/** Both together. Kinds of tokens that neither has had are not named. */
export function addUsage(a: Usage, b: Usage): Usage {
  const sum: Usage = {
    input_tokens: a.input_tokens + b.input_tokens,
    output_tokens: a.output_tokens + b.output_tokens,
  };
  const cached = (a.cached_input_tokens ?? 0) + (b.cached_input_tokens ?? 0);
  const reasoning = (a.reasoning_tokens ?? 0) + (b.reasoning_tokens ?? 0);
  if (cached > 0) sum.cached_input_tokens = cached;
  if (reasoning > 0) sum.reasoning_tokens = reasoning;
  return sum;
}
