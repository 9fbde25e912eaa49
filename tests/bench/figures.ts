/** Figures and what is held against them. */

/** What a figure must not pass. */
export type Bar = { readonly atMost: number } | { readonly atLeast: number } | { readonly exactly: number };

/** One line of the table. */
export interface Figure {
  readonly what: string;
  readonly value: number;
  readonly unit: string;
  readonly bar?: Bar;
  /** What it was made from: the raw figure beside it, how many samples. */
  readonly from?: string;
}

/** Something that could not be measured, and why. */
export interface Skipped {
  readonly what: string;
  readonly skipped: string;
}

/** What one part of the bench gives back. */
export interface PartResult {
  readonly figures: readonly (Figure | Skipped)[];
  /** Everything behind the figures, for the file. */
  readonly detail?: unknown;
  /** False if something failed that should have been measured. The figures are those of the rest. */
  readonly complete?: boolean;
}

/** Whether a figure keeps its bar; null where there is none. */
export function keepsBar({ value, bar }: Figure): boolean | null {
  if (!bar) return null;
  if ('atMost' in bar) return value <= bar.atMost;
  return 'atLeast' in bar ? value >= bar.atLeast : value === bar.exactly;
}

/** A bar in words. */
export function barText(bar: Bar): string {
  if ('atMost' in bar) return `≤ ${bar.atMost}`;
  return 'atLeast' in bar ? `≥ ${bar.atLeast}` : `= ${bar.exactly}`;
}

/** The value below which a share of the samples lies: the nearest rank. */
export function percentile(samples: readonly number[], share: number): number {
  if (samples.length === 0) throw new Error('no samples');
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] as number;
}

/** The middle of the samples; of an even number what lies halfway between the two in the middle. */
export function median(samples: readonly number[]): number {
  const upper = percentile(samples, 0.5);
  if (samples.length % 2 === 1) return upper;
  return (upper + ([...samples].sort((a, b) => a - b)[samples.length / 2 - 1] as number)) / 2;
}

/** The lowest and the highest of the samples, as text. */
export function range(samples: readonly number[]): string {
  return `${shown(Math.min(...samples))}–${shown(Math.max(...samples))}`;
}

/** Rounded for people: three significant digits, and no fraction from a hundred on. */
export function shown(value: number): string {
  if (Math.abs(value) >= 100) return String(Math.round(value));
  return String(Number(value.toPrecision(3)));
}
