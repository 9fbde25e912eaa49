/** Durations as people type them. */
import { UNIT_MS } from '../line/duration-units.ts';

/** Milliseconds of `90s`, `15m`, `1h30m`, `30d`; null where it is no duration, or none at all. */
export function readDuration(text: string): number | null {
  if (!/^(\d{1,9}(ms|s|m|h|d))+$/.test(text)) return null;
  let ms = 0;
  for (const [, count, unit] of text.matchAll(/(\d+)(ms|s|m|h|d)/g)) ms += msOf(count, unit);
  return ms > 0 ? ms : null;
}

/** Milliseconds of `12h`, `90d`, `12w`, and of none of it; null for all else: an `m` would be minutes to one and months to another. */
export function readRetention(text: string): number | null {
  const [, count, unit] = /^(\d{1,6})([hdw])$/.exec(text) ?? [];
  return count === undefined ? null : msOf(count, unit);
}

/** Of what an expression has found: the unit is one of its own. */
function msOf(count: string | undefined, unit: string | undefined): number {
  return Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS];
}
