/** A row of the table of bounds: what comes of something of a size, one below a bound, at it and one above it. */
import type { BOUNDS } from '@coxswain/protocol';

/** One bound and the outcomes just below, at and just above it. */
export interface BoundRow {
  /** What comes of something of a size: `ok`, a code, or what is done instead. */
  readonly of: (size: number) => string | Promise<string>;
  readonly comes: readonly [under: string, at: string, over: string];
}

/** Rows by the names of their bounds. */
export type BoundRows = { readonly [bound in keyof typeof BOUNDS]?: BoundRow };

/** A bound that may be reached and not passed. */
export const most = (over: string, of: BoundRow['of']): BoundRow => ({ of, comes: ['ok', 'ok', over] });
/** A bound that may be reached and not fallen short of. */
export const least = (under: string, of: BoundRow['of']): BoundRow => ({ of, comes: [under, 'ok', 'ok'] });
/** A bound from which on something else happens. */
export const from = (before: string, then: string, of: BoundRow['of']): BoundRow => ({
  of,
  comes: [before, then, then],
});

/** So many members. */
export function list<T>(size: number, member: (index: number) => T): T[] {
  return Array.from({ length: size }, (_, index) => member(index));
}

/** A text so long that its JSON, within `{"<key>":…}`, has so many bytes. */
export function filling(key: string, jsonBytes: number): { readonly [key: string]: string } {
  const frame = Buffer.byteLength(JSON.stringify({ [key]: '' }), 'utf8');
  return { [key]: 'x'.repeat(jsonBytes - frame) };
}
