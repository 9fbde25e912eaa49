/**
 * What models cost. People write USD per million tokens; inside, and in journals, stand whole numbers alone, so that
 * sums never drift: prices in micro-USD per million tokens, costs in nano-USD.
 */
import * as z from 'zod';
import type { Usage } from '../journal/inputs.ts';
import { BOUNDS } from '../wire/bounds.ts';

const PerMillion = z.number().min(0).max(1_000);

/** What the models of a pattern cost, as people write it: USD per million tokens. */
export const ModelPrice = z.strictObject({
  /** Glob on `provider/name`. */
  model: z.string().trim().min(1).max(BOUNDS.patternMaxChars),
  input: PerMillion,
  output: PerMillion,
  /** Input that the provider had in its cache; as other input if not given. */
  cached_input: PerMillion.optional(),
});
/** See {@link ModelPrice}. */
export type ModelPrice = z.infer<typeof ModelPrice>;

/** Prices by model; the first row whose pattern matches holds. */
export const PriceTable = z.array(ModelPrice).max(BOUNDS.pricesMax);
/** See {@link PriceTable}. */
export type PriceTable = z.infer<typeof PriceTable>;

const MicroUsd = z.number().int().nonnegative();

/** The price that a run has pinned, in micro-USD per million tokens. */
export const PinnedPrice = z.strictObject({
  /** The pattern of the row that it comes from. */
  pattern: z.string(),
  input_micro_usd: MicroUsd,
  cached_input_micro_usd: MicroUsd,
  output_micro_usd: MicroUsd,
});
/** See {@link PinnedPrice}. */
export type PinnedPrice = z.infer<typeof PinnedPrice>;

/** A row of a table as whole numbers; what is finer than a micro-USD per million tokens is rounded. */
export function pinnedPrice(row: ModelPrice): PinnedPrice {
  return {
    pattern: row.model,
    input_micro_usd: Math.round(row.input * 1e6),
    cached_input_micro_usd: Math.round((row.cached_input ?? row.input) * 1e6),
    output_micro_usd: Math.round(row.output * 1e6),
  };
}

/**
 * What one answer costs, in nano-USD, rounded up. Input tokens count the cached ones, output tokens those of reasoning,
 * as providers do.
 */
export function costNanoUsd(price: PinnedPrice, usage: Usage): number {
  const cached = Math.min(usage.cached_input_tokens ?? 0, usage.input_tokens);
  // Tokens × micro-USD per million of them are pico-USD.
  const pico =
    (usage.input_tokens - cached) * price.input_micro_usd +
    cached * price.cached_input_micro_usd +
    usage.output_tokens * price.output_micro_usd;
  return Math.floor(pico / 1_000) + (pico % 1_000 > 0 ? 1 : 0);
}

/** USD of a number of nano-USD, for people and events: the nearest number that JSON can hold. */
export function usdOf(nanoUsd: number): number {
  return nanoUsd / 1e9;
}

/** Nano-USD of a sum in USD. */
export function nanoUsdOf(usd: number): number {
  return Math.round(usd * 1e9);
}
