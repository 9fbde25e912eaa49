/** Durations as people type them. */

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Milliseconds of `90s`, `15m`, `1h30m`, `30d`; null where it is no duration, or none at all. */
export function readDuration(text: string): number | null {
  if (!/^(\d{1,9}(ms|s|m|h|d))+$/.test(text)) return null;
  let ms = 0;
  for (const [, count, unit] of text.matchAll(/(\d+)(ms|s|m|h|d)/g)) ms += Number(count) * (UNITS[unit as string] ?? 0);
  return ms > 0 ? ms : null;
}

const KEPT_UNITS: Readonly<Record<string, number>> = { h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** Milliseconds of `12h`, `90d`, `12w`, and of none of it; null for all else: an `m` would be minutes to one and months to another. */
export function readRetention(text: string): number | null {
  const [, count, unit] = /^(\d{1,6})([hdw])$/.exec(text) ?? [];
  return count === undefined ? null : Number(count) * (KEPT_UNITS[unit as string] ?? 0);
}
