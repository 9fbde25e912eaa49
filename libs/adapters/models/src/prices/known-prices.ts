/**
 * List prices of well-known models, as their providers published them in December 2025: USD per million tokens, without
 * batch discounts and surcharges for long prompts. A user's own table takes precedence.
 * A name without a wildcard matches exactly this version: an unknown price is better than a wrong one.
 */
import type { PriceTable } from '@coxswain/protocol';

type Row = readonly [name: string, input: number, cachedInput: number, output: number];

const ANTHROPIC: readonly Row[] = [
  ['claude-opus-4-5*', 5, 0.5, 25],
  ['claude-opus-4-1*', 15, 1.5, 75],
  ['claude-opus-4-0*', 15, 1.5, 75],
  ['claude-opus-4-2025*', 15, 1.5, 75],
  ['claude-sonnet-4-5*', 3, 0.3, 15],
  ['claude-sonnet-4-0*', 3, 0.3, 15],
  ['claude-sonnet-4-2025*', 3, 0.3, 15],
  ['claude-haiku-4-5*', 1, 0.1, 5],
  ['claude-3-7-sonnet*', 3, 0.3, 15],
  ['claude-3-5-haiku*', 0.8, 0.08, 4],
];

const OPENAI: readonly Row[] = [
  ['gpt-5.2', 1.75, 0.175, 14],
  ['gpt-5.2-2025*', 1.75, 0.175, 14],
  ['gpt-5.1', 1.25, 0.125, 10],
  ['gpt-5.1-2025*', 1.25, 0.125, 10],
  ['gpt-5', 1.25, 0.125, 10],
  ['gpt-5-2025*', 1.25, 0.125, 10],
  ['gpt-5-mini*', 0.25, 0.025, 2],
  ['gpt-5-nano*', 0.05, 0.005, 0.4],
  ['gpt-4.1', 2, 0.5, 8],
  ['gpt-4.1-2025*', 2, 0.5, 8],
  ['gpt-4.1-mini*', 0.4, 0.1, 1.6],
  ['gpt-4.1-nano*', 0.1, 0.025, 0.4],
  ['gpt-4o-mini', 0.15, 0.075, 0.6],
  ['gpt-4o-mini-2024*', 0.15, 0.075, 0.6],
  ['gpt-4o', 2.5, 1.25, 10],
  ['o3', 2, 0.5, 8],
  ['o4-mini', 1.1, 0.275, 4.4],
];

const GOOGLE: readonly Row[] = [
  ['gemini-3-pro-preview', 2, 0.2, 12],
  ['gemini-2.5-pro', 1.25, 0.125, 10],
  ['gemini-2.5-flash', 0.3, 0.03, 2.5],
  ['gemini-2.5-flash-lite', 0.1, 0.01, 0.4],
];

/** The built-in table. */
export const KNOWN_PRICES: PriceTable = [
  ...of('anthropic', ANTHROPIC),
  ...of('openai', OPENAI),
  ...of('openai-chat', OPENAI),
  ...of('google', GOOGLE),
  ...of('gemini', GOOGLE),
];

function of(provider: string, rows: readonly Row[]): PriceTable {
  return rows.map(([name, input, cached_input, output]) => ({
    model: `${provider}/${name}`,
    input,
    cached_input,
    output,
  }));
}
