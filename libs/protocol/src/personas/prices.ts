/**
 * Prices of models. People write USD per million tokens. Code and journals use integers, so that sums are exact: prices
 * in micro-USD per million tokens, costs in nano-USD.
 */
import * as z from 'zod';
import type { Usage } from '../journal/inputs.ts';
import { BOUNDS } from '../wire/bounds.ts';

const PerMillion = z.number().min(0).max(1_000);

/** The price of the models that a pattern matches, in USD per million tokens. */
export const ModelPrice = z.strictObject({
  /** Glob on `provider/name`. */
  model: z.string().trim().min(1).max(BOUNDS.patternMaxChars),
  input: PerMillion,
  output: PerMillion,
  /** Cached input tokens. Default: the price of other input. */
  cached_input: PerMillion.optional(),
});
export type ModelPrice = z.infer<typeof ModelPrice>;

/** Prices by model. The first row with a matching pattern applies. */
export const PriceTable = z.array(ModelPrice).max(BOUNDS.pricesMax);
export type PriceTable = z.infer<typeof PriceTable>;

const MicroUsd = z.number().int().nonnegative();

/** The pinned price of a run, in micro-USD per million tokens. */
export const PinnedPrice = z.strictObject({
  /** The pattern of its row. */
  pattern: z.string(),
  input_micro_usd: MicroUsd,
  cached_input_micro_usd: MicroUsd,
  output_micro_usd: MicroUsd,
});
export type PinnedPrice = z.infer<typeof PinnedPrice>;

/** Converts a row to integers, rounded to micro-USD per million tokens. */
export function pinnedPrice(row: ModelPrice): PinnedPrice {
  return {
    pattern: row.model,
    input_micro_usd: Math.round(row.input * 1e6),
    cached_input_micro_usd: Math.round((row.cached_input ?? row.input) * 1e6),
    output_micro_usd: Math.round(row.output * 1e6),
  };
}

/**
 * The cost of one answer in nano-USD, rounded up. As with providers, input tokens include cached ones, and output
 * tokens include reasoning.
 */
export function costNanoUsd(price: PinnedPrice, usage: Usage): number {
  const cached = Math.min(usage.cached_input_tokens ?? 0, usage.input_tokens);
  // Tokens × micro-USD per million tokens = pico-USD.
  const pico =
    (usage.input_tokens - cached) * price.input_micro_usd +
    cached * price.cached_input_micro_usd +
    usage.output_tokens * price.output_micro_usd;
  return Math.floor(pico / 1_000) + (pico % 1_000 > 0 ? 1 : 0);
}

/** Converts nano-USD to USD, for people and events: the nearest JSON number. */
export function usdOf(nanoUsd: number): number {
  return nanoUsd / 1e9;
}

/** Converts USD to nano-USD. */
export function nanoUsdOf(usd: number): number {
  return Math.round(usd * 1e9);
}
