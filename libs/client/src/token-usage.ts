/** Tokens that a model was given and has written. */
import { type CamelCased, fromWire, toWire, Usage } from '@coxswain/protocol';

/** Tokens: `inputTokens`, `outputTokens`, and of these the cached and the reasoning ones where the provider reports them. */
export type TokenUsage = CamelCased<Usage>;

/** The usage of a record with the names of TypeScript. */
export function tokenUsage(usage: Usage): TokenUsage {
  return fromWire(Usage, usage);
}

/** The same in the form of the wire. */
export function usageToWire(usage: TokenUsage): Usage {
  const form = toWire(Usage, usage);
  if (!form.ok) throw new Error(`the usage has no form on the wire: ${form.words}`);
  return form.value as Usage;
}
