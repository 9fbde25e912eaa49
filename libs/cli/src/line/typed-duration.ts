/** Parses durations of command lines. */
import { UNIT_MS } from './duration-units.ts';

/** The ms of `90s`, `15m`, `1h30m` or `30d`; null for an invalid or zero duration. */
export function readDuration(text: string): number | null {
  if (!/^(\d{1,9}(ms|s|m|h|d))+$/.test(text)) return null;
  let ms = 0;
  for (const [, count, unit] of text.matchAll(/(\d+)(ms|s|m|h|d)/g)) ms += msOf(count, unit);
  return ms > 0 ? ms : null;
}

/**
 * The ms of `12h`, `90d` or `12w`, also of zero; null for any other text. `m` is not accepted, because it could mean
 * minutes or months.
 */
export function readRetention(text: string): number | null {
  const [, count, unit] = /^(\d{1,6})([hdw])$/.exec(text) ?? [];
  return count === undefined ? null : msOf(count, unit);
}

/** The parts of a match, whose unit is valid. */
function msOf(count: string | undefined, unit: string | undefined): number {
  return Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS];
}
